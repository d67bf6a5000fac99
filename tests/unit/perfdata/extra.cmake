# What several of these tests share.
foreach(name roundtrip perf bad forms sample faults record)
  if(TARGET unit_perfdata_${name})
    target_sources(unit_perfdata_${name} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/scratch.c
                                                 ${CMAKE_CURRENT_LIST_DIR}/recording.c ${CMAKE_CURRENT_LIST_DIR}/hand.c)
    target_link_libraries(unit_perfdata_${name} PRIVATE ST::zstd)
  endif()
endforeach()

# The functions that test_faults.c lets fail.
if(TARGET unit_perfdata_faults)
  set(functions malloc calloc realloc reallocarray strdup strndup asprintf free write pwrite64 fsync link renameat2 mkdtemp
      mkostemp64 mkdir open64 mmap64 opendir scandir64)
  list(TRANSFORM functions PREPEND "-Wl,--wrap=")
  target_link_options(unit_perfdata_faults PRIVATE ${functions})
endif()
