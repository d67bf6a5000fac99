foreach(name snapshot snapshot_room)
  target_sources(unit_recorder_${name} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/snapshot_world.c)
endforeach()

# Tests that compare with libipt; the stepped ones take their time on a busy machine.
foreach(name ptenc step step_fair step_leave step_rings step_signals step_threads step_waits)
  if(TARGET unit_recorder_${name})
    target_link_libraries(unit_recorder_${name} PRIVATE ST::ipt)
    set_tests_properties(unit_recorder_${name} PROPERTIES TIMEOUT 400)
  endif()
endforeach()

# What they exec. Without instrumentation, which needs a C library.
add_executable(exits_at_once ${CMAKE_CURRENT_LIST_DIR}/exits_at_once.c)
target_compile_options(exits_at_once PRIVATE -fno-sanitize=all -fno-stack-protector)
target_link_options(exits_at_once PRIVATE -nostdlib -static -no-pie -fno-sanitize=all)
add_dependencies(unit_recorder_step exits_at_once)
target_compile_definitions(unit_recorder_step PRIVATE EXITS_AT_ONCE="$<TARGET_FILE:exits_at_once>")

# What is around a trap, replaced.
target_sources(unit_recorder_arm_snapshot PRIVATE ${CMAKE_CURRENT_LIST_DIR}/arm_world.c)
foreach(name rec_clock_now rec_clock_moment rec_group_drain trg_complete trg_frames trg_hold trg_text trg_describe trg_lost rec_sideband_drain
             rec_snapshot_next rec_snapshot_write rec_jobs_add rec_jobs_waiting rec_jobs_go arm_limits_next arm_limits_again
             rec_kallsyms_open rec_facts_take rec_sideband_pids rec_clerk_give rec_clerk_busy rec_room_fill)
  target_link_options(unit_recorder_arm_snapshot PRIVATE -Wl,--wrap=${name})
endforeach()

# Where the child waits to be looked at, and what is refused to it.
foreach(name rec_perf_map_sort setgroups)
  target_link_options(unit_recorder_names_child PRIVATE -Wl,--wrap=${name})
endforeach()

# A processor with cores of several kinds.
foreach(name rec_perf_event rec_perf_event_in_group rec_perf_id)
  target_link_options(unit_recorder_cores PRIVATE -Wl,--wrap=${name})
endforeach()
