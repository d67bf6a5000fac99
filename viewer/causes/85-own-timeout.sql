-- The thread slept because the program asked it to, for a time of its own choosing: most of the stall is sleeps, or a wait with a time-out
-- that ran out. A poll that timed out without work is idle (90-idle.sql) where the trigger counts such waits, unless it waited for nothing
-- but time (poll and select without a descriptor).
WITH l AS (SELECT stall.*, EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = stall.id AND key = 'idle' AND value = 1) AS idle FROM stall WHERE id = ?1),
     asleep AS ( -- the wait that the record tells of, where it is nothing but a sleep
         SELECT * FROM wait WHERE syscall IN ('nanosleep', 'clock_nanosleep')
            OR (has_args AND syscall IN ('poll', 'ppoll') AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = ?1 AND key = 'arg1' AND value = 0))
            OR (has_args AND syscall IN ('select', 'pselect6') AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = ?1 AND key = 'arg0' AND value = 0))),
     waits AS (SELECT coalesce(syscall, 'clock_nanosleep') AS syscall, sum(end_ns - start_ns) AS ns, count(*) AS times, max(place) AS place
               FROM part
               WHERE what = 'waiting' AND (syscall IN ('nanosleep', 'clock_nanosleep') OR syscall IN (SELECT syscall FROM asleep)
                     OR (syscall IS NULL AND (place LIKE 'clock_nanosleep%' OR place LIKE '__clock_nanosleep%' OR place LIKE '__GI___clock_nanosleep%' OR
                                              place LIKE 'nanosleep%' OR place LIKE '__nanosleep%')))
               GROUP BY 1 ORDER BY ns DESC LIMIT 1),
     ran_out AS (SELECT * FROM wait WHERE waker LIKE 'its %time-out' OR timer = 'process_timeout' OR EXISTS (
                      SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = wait.waker_stack_id AND s.name = 'hrtimer_wakeup'))
SELECT 'own time-out' AS cause,
       CASE WHEN asleep.asked_ns IS NULL THEN 'the program asked to sleep: ' || duration(waits.ns) || ' of the ' || duration(l.duration_ns)
            ELSE 'the program asked to sleep for ' || duration(asleep.asked_ns) ||
                 CASE WHEN asleep.end_ns IS NULL THEN ', of which ' || duration(asleep.slept_ns) || ' are over,' ELSE '' END END ||
       ' in ' || waits.syscall || CASE WHEN waits.times > 1 THEN ' (' || waits.times || ' times)' ELSE '' END || coalesce(', at ' || waits.place, '') AS evidence
FROM l JOIN waits LEFT JOIN asleep ON waits.times = 1
WHERE waits.ns * 3 >= l.duration_ns
UNION ALL
SELECT 'own time-out', 'the thread waited ' || ran_out.slept || coalesce(' in ' || ran_out.syscall, '') || ' until a time-out' ||
       coalesce(' of ' || duration(ran_out.asked_ns), '') || ' that it had set itself ran out, and nothing came before' ||
       coalesce(', at ' || ran_out.place, '')
FROM l JOIN ran_out
WHERE NOT l.idle
LIMIT 1
