# Which tests are the gate (`make test`), and which are not. A test is in the gate unless it stands here: its result then depends on the
# code alone, not on the speed of the machine, its load, its disk, its uptime, other processes or the network. What stands here is in
# `make test-all`, under the label of its list; ptvm, machine-long, field and fresh are lists too, and whole folders.
# cli_sorted looks whether each name is one of a test.

# Measures time, or fails when a thread does not run for some milliseconds: "nothing may fire", exact counts of short waits, two clocks
# that are compared, a sleep that stands for a condition.
set(ST_TIMING
  "^unit_triggers_(busy|cgroup|chain|follow|func|hang|idle|irq|learned|offcpu|python|runq|socket|syscall|truth)$"
  "^unit_(recorder_(step_fair|step_waits)|perfdata_record)$"
  "^cli_arm_(bpftrace|decode|every_stall|mark|questions|runtimes|survive|traps|watch)$"
  "^cli_(causes|decode_storm|forwarder_calls|idle_places|perf_files|sample|sample_servers|sample_truth|sample_waits|socat)$"
  "^cli_(comers|stalls)[.]"
  "^cli_matrix[.]sample[.](after|cooldown|all)$"
  "^cli_matrix[.]step[.](offcpu|syscall|runq|func|call|busy|socket|softirq|tracepoint|usdt|bpf|mark|after|cooldown|comm|cgroup)$"
  "^cli_matrix[.]watch[.](offcpu|syscall|runq|func|call|busy|quiet|socket|softirq|tracepoint|usdt|bpf|all)$"
  "^golden_(go|slow_peer|viewer_session)$"
  "^workloads[.]forwarder[.]")

# Asks another program that a network or a service brings: npm's packages, a browser, a database server.
set(ST_NET "^golden_viewer_(elsewhere|npm|page)$")

# What the sanitized build runs again: what reads foreign bytes, or packs and unpacks. The rest of it is in `make test-all`.
set(ST_SANITIZED_GATE
  "^unit_(base|perfdata|tracedb|decoder)_"
  "^unit_triggers_(documented|golang|histogram|hostile_elf|parse|places|record)$"
  "^unit_recorder_(children|code_files|intel_pt|names_child|proc|ptenc|record_store|snapshot|snapshot_name|snapshot_room)$"
  "^golden_(deep|viewer|viewer_export|viewer_reports|viewer_tiles)$"
  "^cli_query$")

# The groups of the folder hostile: what files and databases hold that others wrote; what other processes and users do; calls and processes
# that fail. Each test of the folder is in one at least.
set(ST_HOSTILE_INPUT "^hostile_(audit|databases|elf|jit_files|memory|reach|shrinking|terminal)$")
set(ST_HOSTILE_NEIGHBOURS
  "^hostile_(audit|blocked_memory|devices|endless|endless_rate|flood|folders|http_silent|open_by_path|probed|snap|soak)$")
set(ST_HOSTILE_FAULTS "^hostile_(audit|faults|kills|leftovers|sigterm|step_waits|swept)$")

# Of the folder hostile, what takes minutes, fills the disk at the speed of the machine, or was not yet seen to pass ten times of ten on a busy one
# (kills, leftovers). The others are in the gate, and look at clocks only in `make hostile`.
set(ST_HOSTILE_LONG "^hostile_(audit|endless|endless_rate|flood|kills|leftovers|soak)$")

function(st_matches out name)
  set(${out} FALSE PARENT_SCOPE)
  foreach(pattern ${ARGN})
    if(name MATCHES ${pattern})
      set(${out} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# The labels of its groups for a test of the folder hostile.
function(st_group_hostile name)
  set(groups "")
  foreach(group INPUT NEIGHBOURS FAULTS)
    st_matches(is_one ${name} ${ST_HOSTILE_${group}})
    if(is_one)
      string(TOLOWER hostile-${group} label)
      list(APPEND groups ${label})
    endif()
  endforeach()
  if(NOT groups)
    message(FATAL_ERROR "${name} is in none of the groups of hostile tests: tests/sort.cmake")
  endif()
  set_property(TEST ${name} APPEND PROPERTY LABELS ${groups})
endfunction()

# Gives each test of the folder that calls this its label beside that of its kind: gate, timing or net. Those of folders that are lists of their
# own get none.
function(st_sort_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(name ${tests})
    string(REGEX REPLACE "^sanitized[.]" "" plain ${name})
    get_test_property(${name} LABELS labels)
    st_matches(timing ${plain} ${ST_TIMING})
    st_matches(net ${plain} ${ST_NET})
    st_matches(twice ${plain} ${ST_SANITIZED_GATE})
    st_matches(long ${plain} ${ST_HOSTILE_LONG})
    if(labels STREQUAL "hostile")
      st_group_hostile(${name})
    endif()
    if(labels MATCHES "ptvm|machine-long|field|fresh" OR long)
      continue()
    elseif(timing)
      set_property(TEST ${name} APPEND PROPERTY LABELS timing)
    elseif(net)
      set_property(TEST ${name} APPEND PROPERTY LABELS net)
    elseif(plain STREQUAL name OR twice)
      set_property(TEST ${name} APPEND PROPERTY LABELS gate)
      # Ten times what a fast machine needs, and more: it ends what hangs, and costs nothing else.
      set_tests_properties(${name} PROPERTIES TIMEOUT 900)
    endif()
  endforeach()
endfunction()
