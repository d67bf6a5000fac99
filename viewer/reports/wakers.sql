-- Who ended the waits: by the waker that the stall records name, the timer that ran before it, and what it was doing.
SELECT coalesce(l.waker, CASE WHEN l.end_ns IS NULL THEN '[nobody yet]' ELSE '[not known]' END) AS waker, l.timer,
       (SELECT s.name FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = l.waker_stack_id ORDER BY k.depth LIMIT 1) AS in_kernel,
       t.name AS woken, t.tid, l.syscall, count(*) AS times, sum(l.duration_ns) AS waited_ns, max(l.duration_ns) AS longest_ns,
       max(l.end_ns - l.wake_ns) AS wake_to_run_ns
FROM stall l
LEFT JOIN thread t ON t.id = l.thread_id
GROUP BY 1, l.timer, 3, t.id, l.syscall
ORDER BY waited_ns DESC, waker
LIMIT coalesce(:limit, 40)
