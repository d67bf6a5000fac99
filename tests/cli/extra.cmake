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
foreach(kind all offcpu syscall func call busy runq socket socket.queue socket.unsent quiet softirq tracepoint usdt bpf)
  st_cli_test(kinds.${kind} kinds.sh ${kind})
endforeach()
foreach(what sample thread cpu step many ends watch user old)
  st_cli_test(comers.${what} comers.sh ${what})
endforeach()

# The cells of matrix.table.
set(ST_MATRIX_SOURCES sample step intel-pt watch)
st_cli_test(matrix.all matrix.sh all)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cli/matrix.table)
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/cli/matrix.table rows REGEX "^[a-z]")
foreach(row ${rows})
  string(REGEX REPLACE " +" ";" cells "${row}")
  list(POP_FRONT cells what)
  foreach(source cell IN ZIP_LISTS ST_MATRIX_SOURCES cells)
    if(cell STREQUAL "run")
      st_cli_test(matrix.${source}.${what} matrix.sh ${source} ${what})
    endif()
  endforeach()
endforeach()

# Damaged and hostile databases are read by the sanitized build too, which runs the tests of the labels unit and golden.
set_property(TEST cli_query APPEND PROPERTY LABELS golden)
