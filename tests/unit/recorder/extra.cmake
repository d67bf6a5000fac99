# Tests that compare with libipt.
foreach(name ptenc step step_survive)
  if(TARGET unit_recorder_${name})
    target_link_libraries(unit_recorder_${name} PRIVATE ST::ipt)
  endif()
endforeach()
