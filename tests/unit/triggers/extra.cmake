# The tests that arm triggers share a consumer of the rings and children that block.
foreach(target unit_triggers_offcpu unit_triggers_follow unit_triggers_limits)
  if(TARGET ${target})
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/watch.c
                                     ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/workload.c)
    set_tests_properties(${target} PROPERTIES RUN_SERIAL TRUE)
  endif()
endforeach()
