# Tests that run one script several times.
function(st_cli_test name)
  add_test(NAME cli_${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/cli/${ARGN})
  st_test_is(cli_${name} cli 300)
  set_tests_properties(cli_${name} PROPERTIES
    ENVIRONMENT "STALLTRAP=$<TARGET_FILE:stalltrap>;BUILD=${CMAKE_BINARY_DIR};SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

foreach(kind lock fsync fsync_fuse slowsend nagle busy idle forever)
  st_cli_test(stalls.${kind} stalls.sh ${kind})
endforeach()
foreach(kind all offcpu syscall func call busy runq socket socket.queue quiet softirq tracepoint usdt bpf)
  st_cli_test(kinds.${kind} kinds.sh ${kind})
endforeach()

# Damaged and hostile databases are read by the sanitized build too, which runs the tests of the labels unit and golden.
set_property(TEST cli_query APPEND PROPERTY LABELS golden)
