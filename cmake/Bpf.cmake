# NAME.bpf.c of a room, in whatever folder of it -> NAME.skel.h in build/generated/ROOM (include "ROOM/NAME.skel.h").
function(st_bpf_room room)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.bpf.c)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.h ${CMAKE_SOURCE_DIR}/base/stall_record.h)
  set(out ${CMAKE_BINARY_DIR}/generated/${room})
  file(MAKE_DIRECTORY ${out})
  set(skeletons "")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_custom_command(
      OUTPUT ${out}/${name}.bpf.o
      COMMAND ${ST_CLANG} -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -D__bpf__ -Wall -Wextra -Werror
              -I${CMAKE_SOURCE_DIR} -isystem /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE} -c ${source} -o ${out}/${name}.bpf.o
      DEPENDS ${source} ${headers} VERBATIM)
    add_custom_command(
      OUTPUT ${out}/${name}.skel.h
      COMMAND sh -c "'${ST_BPFTOOL}' gen skeleton '${out}/${name}.bpf.o' name '${name}_bpf' >'${out}/${name}.skel.h'"
      DEPENDS ${out}/${name}.bpf.o VERBATIM)
    list(APPEND skeletons ${out}/${name}.skel.h)
  endforeach()
  if(skeletons)
    add_custom_target(st_${room}_skeletons DEPENDS ${skeletons})
    add_dependencies(st_${room} st_${room}_skeletons)
  endif()
endfunction()
