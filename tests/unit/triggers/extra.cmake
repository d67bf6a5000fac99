# The tests that arm triggers share a consumer of the rings, children that block, and how the two are compared.
foreach(name offcpu idle hang chain follow limits syscall runq func busy irq hits socket)
  set(target unit_triggers_${name})
  foreach(source watch workload told spans observer)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/${source}.c)
  endforeach()
  set_tests_properties(${target} PROPERTIES RUN_SERIAL TRUE)
endforeach()
