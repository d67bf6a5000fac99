# The tests that arm triggers share a consumer of the rings, children that block, and how the two are compared.
foreach(name offcpu idle learned hang state many chain follow cgroup limits syscall runq func busy irq hits quiet quota socket truth)
  set(target unit_triggers_${name})
  foreach(source watch workload told spans observer)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/${source}.c)
  endforeach()
  target_link_libraries(${target} PRIVATE st_test_control)
  set_tests_properties(${target} PROPERTIES RUN_SERIAL TRUE)
endforeach()

target_sources(unit_triggers_truth PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/truth_work.c
                                           ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/truth_seen.c)
if(ST_SANITIZE) # it tells what the kernel's programs do, once
  set_tests_properties(unit_triggers_truth PROPERTIES LABELS truth)
endif()

# A user's own BPF object, for bpf:FILE.o.
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/tests/user.bpf.o
  COMMAND ${ST_CLANG} -g -O2 -target bpf -D__TARGET_ARCH_x86 -D__bpf__ -Wall -Wextra -Werror -I${CMAKE_SOURCE_DIR}
          -isystem /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE} -c ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/user.bpf.c
          -o ${CMAKE_BINARY_DIR}/tests/user.bpf.o
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/user.bpf.c ${CMAKE_SOURCE_DIR}/triggers/include/stalltrap.bpf.h
          ${CMAKE_SOURCE_DIR}/base/stall_record.h VERBATIM)
add_custom_target(user_bpf_object DEPENDS ${CMAKE_BINARY_DIR}/tests/user.bpf.o)
add_dependencies(unit_triggers_hits user_bpf_object)

target_compile_definitions(unit_triggers_python PRIVATE PYTHON_PROGRAM="${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/python.py")

add_library(triggers_versioned SHARED ${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/versioned.c)
target_compile_options(triggers_versioned PRIVATE -fno-sanitize=all)
target_link_options(triggers_versioned PRIVATE -fno-sanitize=all -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/unit/triggers/versioned.map)
target_link_libraries(unit_triggers_func PRIVATE triggers_versioned)
