-- The thread wanted memory and was made to free some first: its own control group's, or the machine's.
SELECT 'memory reclaim' AS cause,
       'the thread slept ' || l.slept || ' while the kernel freed memory' ||
       CASE WHEN s.name IN ('try_to_free_mem_cgroup_pages', 'mem_cgroup_handle_over_high', '__mem_cgroup_handle_over_high',
                            'mem_cgroup_oom_synchronize')
            THEN ' of its control group, which is at its limit' ELSE '' END ||
       ' (' || s.name || ')' || coalesce(' in ' || l.syscall, ' at a page fault') AS evidence
FROM wait l
JOIN stack k ON k.id = l.kernel_stack_id
JOIN symbol s ON s.id = k.symbol_id
WHERE s.name IN ('try_to_free_mem_cgroup_pages', 'mem_cgroup_handle_over_high', '__mem_cgroup_handle_over_high', 'try_to_free_pages',
                 'mem_cgroup_oom_synchronize', 'do_try_to_free_pages', 'throttle_direct_reclaim', 'reclaim_throttle', 'out_of_memory')
ORDER BY s.name NOT LIKE '%mem_cgroup%', k.depth DESC
LIMIT 1
