-- The thread slept because the program asked it to, for a time of its own choosing: most of the stall is sleeps, or a wait with a time-out
-- that ran out. A poll that timed out without work is idle (90-idle.sql) where the trigger counts such waits.
WITH l AS (SELECT stall.*, EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = stall.id AND key = 'idle' AND value = 1) AS idle FROM stall WHERE id = ?1),
     waits AS (SELECT coalesce(syscall, 'clock_nanosleep') AS syscall, sum(end_ns - start_ns) AS ns, count(*) AS times, max(place) AS place
               FROM part
               WHERE what = 'waiting' AND (syscall IN ('nanosleep', 'clock_nanosleep')
                     OR (syscall IS NULL AND (place LIKE 'clock_nanosleep%' OR place LIKE '__clock_nanosleep%' OR place LIKE '__GI___clock_nanosleep%' OR
                                              place LIKE 'nanosleep%' OR place LIKE '__nanosleep%')))
               GROUP BY 1 ORDER BY ns DESC LIMIT 1),
     out_in_parts AS ( -- of a stall that is a system call: its waits that a time-out ended
         SELECT p.syscall, sum(p.end_ns - p.start_ns) AS ns FROM part p JOIN l ON l.kind = 'syscall' AND NOT l.idle
         WHERE p.what = 'waiting' AND p.who = 'its time-out'
           AND p.syscall IN ('futex', 'poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2', 'recvfrom', 'recvmsg', 'read')
         GROUP BY p.syscall ORDER BY ns DESC LIMIT 1),
     ran_out AS (SELECT l.id FROM l WHERE l.kind = 'offcpu' AND NOT l.idle
                 AND l.syscall IN ('futex', 'poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2', 'recvfrom', 'recvmsg', 'read')
                 AND (l.timer = 'process_timeout' OR EXISTS (
                      SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = l.waker_stack_id AND s.name = 'hrtimer_wakeup')))
SELECT 'own time-out' AS cause,
       'the program asked to sleep: ' || duration(waits.ns) || ' of the ' || duration(l.duration_ns) || ' in ' || waits.syscall ||
       CASE WHEN waits.times > 1 THEN ' (' || waits.times || ' times)' ELSE '' END || coalesce(', at ' || waits.place, '') AS evidence
FROM l JOIN waits
WHERE waits.ns * 3 >= l.duration_ns
UNION ALL
SELECT 'own time-out', 'the thread waited in ' || l.syscall || ' until a time-out that it had set itself ran out, and nothing came before'
FROM l JOIN ran_out
UNION ALL
SELECT 'own time-out', 'the thread waited for ' || duration(o.ns) || ' in ' || o.syscall || ' until a time-out that it had set itself ran out, and nothing came before'
FROM l JOIN out_in_parts o
WHERE o.ns * 3 >= l.duration_ns
LIMIT 1
