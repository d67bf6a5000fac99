# Puts a text file into a room as `extern const char SYMBOL[];`.
function(st_embed_text room file symbol)
  set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_SOURCE_DIR}/${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
  target_sources(st_${room} PRIVATE ${out})
endfunction()
