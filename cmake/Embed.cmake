# Puts a text file into a room as `extern const char SYMBOL[];`.
function(st_embed_text room file symbol)
  set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_SOURCE_DIR}/${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
  target_sources(st_${room} PRIVATE ${out})
endfunction()

# Puts every *.sql of a folder into a room: an array `SYMBOL[]` of struct vw_sql {name, text}, in the order of the names.
function(st_embed_sql_folder room folder symbol)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.sql)
  list(SORT files)
  set(declarations "")
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(MAKE_C_IDENTIFIER "${symbol}_${name}" id)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR} ${file})
    st_embed_text(${room} ${relative} ${id})
    string(APPEND declarations "extern const char ${id}[];\n")
    string(APPEND entries "    {\"${name}\", ${id}},\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
  file(CONFIGURE OUTPUT ${out} CONTENT "#include \"viewer/sql.h\"\n${declarations}const struct vw_sql ${symbol}[] = {\n${entries}    {0, 0},\n};\n")
  target_sources(st_${room} PRIVATE ${out})
endfunction()
