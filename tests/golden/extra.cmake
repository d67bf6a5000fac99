add_test(NAME golden_schema COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/golden/check_schema.py ${CMAKE_SOURCE_DIR})
st_test_is(golden_schema golden 60)

# One test of calls.sh a workload; and the commands that perf's sequence alone tells the truth about.
function(st_golden_calls name)
  add_test(NAME golden_calls.${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/golden/calls.sh ${ARGN})
  st_test_is(golden_calls.${name} golden 600)
  set_tests_properties(golden_calls.${name} PROPERTIES
    ENVIRONMENT "STALLTRAP=$<TARGET_FILE:stalltrap>;BUILD=${CMAKE_BINARY_DIR};SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

foreach(name recursion func_pointers tail_calls setjmp_longjmp signals nested_signals exceptions threads ifunc nest coroutine fibers thunks)
  st_golden_calls(${name} workload ${name} 0)
endforeach()
st_golden_calls(code32 workload code32 0)
st_golden_calls(segv workload segv 139)
st_golden_calls(dlopen_close workload dlopen_close 0 plugin_a.so plugin_b.so)
foreach(name plt_lazy plt_now)
  st_golden_calls(${name} workload ${name} 0 plt_lib.so)
endforeach()
foreach(name fork_exec vfork_exec)
  st_golden_calls(${name} workload ${name} 0 exec_target)
endforeach()
# Recorded without compression of returns.
add_executable(stalltrap_noretcomp ${CMAKE_SOURCE_DIR}/stalltrap.c ${CMAKE_CURRENT_SOURCE_DIR}/golden/no_ret_compression.c)
target_link_libraries(stalltrap_noretcomp PRIVATE st_recorder st_decoder st_viewer)
set_target_properties(stalltrap_noretcomp PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
foreach(name tail_calls exceptions coroutine code32)
  st_golden_calls(${name}.noretcomp workload ${name} 0)
  set_tests_properties(golden_calls.${name}.noretcomp PROPERTIES
    ENVIRONMENT "STALLTRAP=$<TARGET_FILE:stalltrap_noretcomp>;BUILD=${CMAKE_BINARY_DIR};SOURCE=${CMAKE_SOURCE_DIR}")
endforeach()
st_golden_calls(ls command /bin/ls /etc/apt)
st_golden_calls(git command git --version)
