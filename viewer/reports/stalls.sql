-- Every stall record of the trace, the one that fired marked with *.
SELECT CASE WHEN id = (SELECT value FROM meta WHERE key = 'trigger_stall_id') THEN '*' ELSE '' END AS fired, id, thread, tid, kind,
       start_ns, duration_ns, CASE WHEN end_ns IS NULL THEN 'yes' ELSE '' END AS going_on, state, syscall, waker, reason
FROM stalls
ORDER BY start_ns, id
LIMIT coalesce(:limit, -1)
