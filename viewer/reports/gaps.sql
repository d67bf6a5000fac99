-- Everything that is missing, longest first.
SELECT coalesce(t.name || ' ' || t.tid, 'CPU ' || g.cpu, 'all') AS track, duration(g.start_ns) AS start,
       duration(g.end_ns - g.start_ns) AS duration, g.reason, g.detail
FROM gaps g
LEFT JOIN thread t ON t.id = g.thread_id
ORDER BY g.end_ns - g.start_ns DESC, g.start_ns
LIMIT 200
