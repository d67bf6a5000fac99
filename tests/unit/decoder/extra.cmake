# Helpers of several tests of this folder.
foreach(test stack stack_coroutines stack_effects stack_kernel stack_repairs inlines)
  target_sources(unit_decoder_${test} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/stack_script.c)
endforeach()
foreach(test sideband turns model model_many model_stalls model_points model_samples model_waiting many)
  target_sources(unit_decoder_${test} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/recording.c)
endforeach()

foreach(test model model_many model_stalls model_waiting)
  target_sources(unit_decoder_${test} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/model_world.c)
endforeach()

# Decodes under adverse conditions, for tests/cli/test_decode.sh.
add_executable(decode_bad ${CMAKE_CURRENT_LIST_DIR}/decode_bad.c)
target_link_libraries(decode_bad PRIVATE st_decoder ${CMAKE_DL_LIBS})
if(ST_SANITIZE)
  target_compile_definitions(decode_bad PRIVATE ST_WRAP_ALLOCATIONS)
  target_link_options(decode_bad PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free)
endif()
# It stands in for some of the libraries' functions.
target_link_libraries(unit_decoder_lines PRIVATE ${CMAKE_DL_LIBS})
