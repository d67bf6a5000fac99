# What all workloads have in common: where they go, and how they are compiled.
find_package(Threads REQUIRED)
set(workloads_dir ${CMAKE_BINARY_DIR}/tests/workloads)

# Last on the command line, so that the build type, sanitizers of the whole build and the like change nothing: the call
# trees are known only for these flags.
set(workload_flags -g -O1 -Wall -Wextra -Werror -fno-inline -fno-optimize-sibling-calls -fno-omit-frame-pointer
                   -fno-sanitize=all)

# workload_target(TARGET NAME DIRECTORY): what all targets here have in common
function(workload_target target name directory)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE ${workload_flags})
  target_link_options(${target} PRIVATE -fno-sanitize=all -Wl,--build-id)
  set_target_properties(
    ${target}
    PROPERTIES OUTPUT_NAME ${name}
               RUNTIME_OUTPUT_DIRECTORY ${directory}
               LIBRARY_OUTPUT_DIRECTORY ${directory}
               C_STANDARD 17
               C_EXTENSIONS ON
               CXX_STANDARD 17
               INTERPROCEDURAL_OPTIMIZATION OFF
               BUILD_RPATH "$ORIGIN")
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
