-- A wait in a call of the idle list, which counted because the trigger said idle=yes, and which nothing above explains. Threads wait for work in
-- such calls, and for each other too: what this one waited for was not measured.
SELECT 'usually idle' AS cause,
       'the thread waited in ' || coalesce(l.syscall, 'the kernel') || ', in which threads mostly wait for work' || CASE
           WHEN l.end_ns IS NULL THEN ', and nothing has come'
           WHEN l.waker LIKE 'thread %' THEN ', until ' || l.waker || ' woke it'
           WHEN EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
                        WHERE k.id = l.waker_stack_id AND s.name = 'hrtimer_wakeup') OR l.timer = 'process_timeout' OR l.waker LIKE 'its %time-out'
               THEN ', until its own time was over'
           ELSE '' END || '; the trigger counts such waits (idle=yes), and whether this one was for work is not known: its call path may tell' AS evidence
FROM stall l
WHERE l.id = ?1 AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'idle' AND value = 1)
