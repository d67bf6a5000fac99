-- A wait for something that another thread of the same process had to do first, and which is not known as a lock: a condition variable, a
-- semaphore, a runtime's own lock (Python's, PostgreSQL's, a JVM's monitor). Who ended it, and what that one did meanwhile, by its switches.
WITH l AS (SELECT wait.*, (SELECT process_id FROM thread WHERE id = wait.thread_id) AS process_id
           FROM wait WHERE syscall = 'futex' AND wake_ns IS NOT NULL AND waker LIKE 'thread %' AND waker_thread_id <> thread_id
             AND NOT EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = ?1 AND key = 'idle' AND value = 1)),
     other AS (SELECT l.* FROM l JOIN thread t ON t.id = l.waker_thread_id AND t.process_id = l.process_id),
     call(name) AS (SELECT s.name FROM other JOIN stall_attr a ON a.stall_id = ?1 AND a.key = 'waker_user_stack_id' JOIN stack k ON k.id = a.value
                    JOIN symbol s ON s.id = k.symbol_id WHERE s.name NOT LIKE '[%' AND s.name NOT LIKE '%futex_wake%' ORDER BY k.depth LIMIT 1),
     ran(ns) AS (SELECT sum(min(i.end_ns, o.wake_ns) - max(i.start_ns, o.start_ns)) FROM other o JOIN slice i ON i.thread_id = o.waker_thread_id
                 AND i.start_ns < o.wake_ns AND i.end_ns > o.start_ns),
     off(ns, how) AS (SELECT min(f.end_ns, o.wake_ns) - max(f.start_ns, o.start_ns),
                             coalesce((SELECT m.detail FROM mark m WHERE m.name = 'offcpu' AND m.thread_id = f.thread_id AND m.time_ns <= f.start_ns
                              AND m.time_ns >= coalesce((SELECT max(p.end_ns) FROM offcpu p WHERE p.thread_id = f.thread_id AND p.start_ns < f.start_ns), 0)
                              AND m.time_ns >= coalesce((SELECT max(p.start_ns) FROM slice p WHERE p.thread_id = f.thread_id AND p.start_ns < f.start_ns), 0)
                              ORDER BY m.time_ns DESC LIMIT 1),
                                      (SELECT m.detail FROM mark m WHERE m.name = 'waiting' AND m.thread_id = f.thread_id AND m.time_ns BETWEEN f.start_ns AND f.end_ns))
                      FROM other o JOIN offcpu f ON f.thread_id = o.waker_thread_id AND f.start_ns < o.wake_ns AND f.end_ns > o.start_ns ORDER BY 1 DESC LIMIT 1)
SELECT 'waited for another thread' AS cause,
       'the thread waited ' || other.slept || ' in futex until ' || other.waker || ' woke it' || coalesce(', in ' || (SELECT name FROM call) || '()', '') ||
       CASE WHEN (SELECT ns FROM off) * 2 >= other.duration_ns
            THEN '; that one was itself off its CPU for ' || duration((SELECT ns FROM off)) || ' of it' || coalesce(' (' || (SELECT how FROM off) || ')', '')
            WHEN (SELECT ns FROM ran) * 2 >= other.duration_ns THEN '; that one ran for ' || duration((SELECT ns FROM ran)) || ' of it'
            ELSE '' END AS evidence
FROM other
