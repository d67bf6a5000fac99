# Helpers of several tests of this folder.
foreach(test stack stack_kernel stack_repairs)
  target_sources(unit_decoder_${test} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/stack_script.c)
endforeach()
foreach(test sideband turns model model_samples)
  target_sources(unit_decoder_${test} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/recording.c)
endforeach()
