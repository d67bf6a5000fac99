-- The thread waited for a process that it, or another thread of its program, had started, in wait4 or waitid, and that one ended: its end
-- is what woke it (do_notify_parent). Of the waits for a child that go on nothing is said.
WITH ended AS (SELECT wait.* FROM wait WHERE syscall IN ('wait4', 'waitid') AND wake_ns IS NOT NULL AND waker LIKE 'thread %'
               AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = wait.waker_stack_id AND s.name = 'do_notify_parent')
               AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = wait.waker_stack_id AND s.name = 'do_exit'))
SELECT 'waited for a child' AS cause,
       'the thread waited ' || slept || ' in ' || syscall || ' until process ' || substr(waker, 8) || ' ended' || coalesce(', at ' || place, '') AS evidence
FROM ended
LIMIT 1
