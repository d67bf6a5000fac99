# Tests that compare with libipt; the stepped ones take their time on a busy machine.
foreach(name ptenc step step_survive)
  if(TARGET unit_recorder_${name})
    target_link_libraries(unit_recorder_${name} PRIVATE ST::ipt)
    set_tests_properties(unit_recorder_${name} PROPERTIES TIMEOUT 400)
  endif()
endforeach()
