-- Every stall record of the trace, the one that fired marked with *.
SELECT CASE WHEN id = (SELECT value FROM meta WHERE key = 'trigger_stall_id') THEN '*' ELSE '' END AS fired, id, thread, tid, kind,
       duration(start_ns) AS start, duration(duration_ns) || CASE WHEN end_ns IS NULL THEN ' (going on)' ELSE '' END AS duration,
       state, syscall, waker, reason
FROM stalls
ORDER BY start_ns
