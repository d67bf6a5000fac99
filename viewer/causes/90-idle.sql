-- A wait for work, which counted because the trigger said idle=yes, and which nothing above explains: no stall.
SELECT 'idle after all' AS cause,
       'the thread waited for work in ' || coalesce(l.syscall, 'the kernel') || CASE
           WHEN l.end_ns IS NULL THEN ', and nothing has come'
           WHEN l.waker LIKE 'thread %' THEN ' until ' || l.waker || ' had some'
           WHEN EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
                        WHERE k.id = l.waker_stack_id AND s.name = 'hrtimer_wakeup') OR l.timer = 'process_timeout'
               THEN ' until its own time was over'
           ELSE '' END || '; the trigger counts such waits (idle=yes)' AS evidence
FROM stall l
WHERE l.id = ?1 AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'idle' AND value = 1)
