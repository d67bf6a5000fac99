# The tests, behind the target `tests`, where what they are built with is there. Where it is not, that target says what is missing; what
# they run with, tools/deps.sh knows.
include(CheckLanguage)
if(NOT CMAKE_CXX_COMPILER)
  unset(CMAKE_CXX_COMPILER CACHE) # it may have come since it was looked for
endif()
check_language(CXX)
pkg_check_modules(ST_cmocka QUIET IMPORTED_TARGET cmocka)
find_path(ST_BOOST_CONTEXT boost/context/fiber.hpp)
set(missing "")
if(NOT CMAKE_CXX_COMPILER)
  string(APPEND missing " g++")
endif()
if(NOT ST_cmocka_FOUND)
  string(APPEND missing " libcmocka-dev")
endif()
if(NOT ST_BOOST_CONTEXT)
  string(APPEND missing " libboost-context-dev")
endif()

if(missing)
  add_custom_target(tests COMMAND ${CMAKE_COMMAND} -E echo "The tests need these Debian packages:${missing} (make test-deps installs them)"
                          COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  return()
endif()

# What is built in a folder and below it.
function(st_targets_below folder out)
  get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder ${subfolders})
    st_targets_below(${subfolder} more)
    list(APPEND found ${more})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

add_library(ST::cmocka ALIAS PkgConfig::ST_cmocka)
enable_language(CXX)
add_subdirectory(${CMAKE_SOURCE_DIR}/tests EXCLUDE_FROM_ALL)
st_targets_below(${CMAKE_SOURCE_DIR}/tests programs)
add_custom_target(tests DEPENDS stalltrap ${programs} workload_forwarder)
