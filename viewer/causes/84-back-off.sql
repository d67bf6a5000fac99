-- The thread asks again and again, at intervals that grow by one factor (a monitor of the JVM: 1, 8, 64 ms): the wait that the record tells of ran
-- into its own time-out, and two more came right before it. That is no sleep; for what it waits is not seen, nor
-- how the waits before ended.
WITH l AS (SELECT * FROM stall WHERE id = ?1),
     ran_out AS (SELECT wait.* FROM wait WHERE wake_ns IS NOT NULL AND syscall NOT IN ('nanosleep', 'clock_nanosleep') AND (waker LIKE 'its %time-out'
                 OR EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = wait.waker_stack_id AND s.name = 'hrtimer_wakeup'))),
     -- the thread's waits before this one, the latest first
     before AS (SELECT o.start_ns, o.end_ns, o.end_ns - o.start_ns AS ns, row_number() OVER (ORDER BY o.start_ns DESC) AS n
                FROM l JOIN ran_out JOIN offcpu o ON o.thread_id = l.thread_id AND o.end_ns <= ran_out.start_ns + 100000
                     AND o.end_ns > ran_out.start_ns - 2 * ran_out.duration_ns AND NOT o.preempted LIMIT 2),
     turns AS (SELECT ran_out.duration_ns AS c, b.ns AS b, a.ns AS a, ran_out.place AS place, ran_out.syscall AS syscall
               FROM ran_out JOIN before b ON b.n = 1 JOIN before a ON a.n = 2
               -- with next to nothing between them
               WHERE ran_out.start_ns - b.end_ns < ran_out.duration_ns / 100 AND b.start_ns - a.end_ns < b.ns / 20)
SELECT 'back-off' AS cause,
       'the thread waited ' || duration(a) || ', ' || duration(b) || ' and ' || duration(c) || ', one right after the other, the last time' ||
       coalesce(' in ' || syscall, '') || coalesce(', at ' || place, '') || ', until a time-out of its own ran out: as one that asks again, less and less often, for what has not come' AS evidence
FROM turns
WHERE a >= 500000 AND b >= a * 1.5 AND c >= b * 1.5 AND abs(1.0 * c / b - 1.0 * b / a) < 0.2 * c / b
