-- Somebody stopped the thread: by a signal (SIGSTOP, Ctrl-Z), or it is traced (a debugger, strace), or its control group is frozen.
WITH l AS (SELECT *, (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'stopped_by') AS sender,
                  (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'stop_signal') AS signal,
                  (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'tracer') AS tracer,
                  (SELECT tid FROM thread t WHERE t.id = stall.thread_id) AS tid
           FROM stall WHERE id = ?1),
     stops AS (SELECT state, sum(end_ns - start_ns) AS ns, count(*) AS times FROM part WHERE what = 'waiting' AND state IN ('stopped', 'tracing stop')
               GROUP BY state ORDER BY ns DESC LIMIT 1),
     went_on(who) AS (SELECT CASE WHEN who NOT LIKE 'thread % "%' AND CAST(substr(who, 8) AS INTEGER) = CAST(substr(l.sender, 8) AS INTEGER)
                               THEN l.sender ELSE who END -- it has ended, and its name is not in the trace
                      FROM l JOIN part p WHERE p.what = 'waiting' AND p.state = (SELECT state FROM stops) AND p.who LIKE 'thread %'
                      ORDER BY p.end_ns - p.start_ns DESC LIMIT 1)
SELECT 'stopped' AS cause,
       CASE stops.state WHEN 'stopped'
            THEN CASE l.signal WHEN 19 THEN 'SIGSTOP' WHEN 20 THEN 'SIGTSTP' WHEN 21 THEN 'SIGTTIN' WHEN 22 THEN 'SIGTTOU' ELSE 'a signal' END ||
                 CASE WHEN l.sender LIKE 'thread ' || l.tid || ' %' THEN ', which it sent itself,' ELSE coalesce(' from ' || l.sender, '') END ||
                 ' stopped the thread for '
            ELSE coalesce(l.tracer || ', which traces it,', 'a tracer (a debugger, strace)') || ' held the thread for ' END ||
       duration(stops.ns) || ' of the ' || duration(l.duration_ns) || CASE WHEN stops.times > 1 THEN ' (' || stops.times || ' times)' ELSE '' END ||
       coalesce('; ' || (SELECT who FROM went_on) || ' let it go on', '') AS evidence
FROM l JOIN stops
WHERE stops.ns * 3 >= l.duration_ns
UNION ALL
SELECT 'frozen', 'the freezer held the thread for ' || wait.slept || ' (' || s.name || ')' ||
       CASE WHEN wait.waker LIKE 'thread %' AND EXISTS (
           SELECT 1 FROM stack k JOIN symbol n ON n.id = k.symbol_id WHERE k.id = wait.waker_stack_id
           AND n.name IN ('freezer_write', 'cgroup_freeze_write', 'cgroup_freeze', 'cgroup_do_freeze', 'unfreeze_cgroup', 'thaw_processes'))
            THEN '; ' || wait.waker || ' thawed it' WHEN wait.end_ns IS NULL THEN ', and still holds it' ELSE '' END
FROM wait JOIN stack k ON k.id = wait.kernel_stack_id JOIN symbol s ON s.id = k.symbol_id
WHERE s.name IN ('__refrigerator', 'do_freezer_trap', 'cgroup_enter_frozen') AND k.depth < 3
LIMIT 1
