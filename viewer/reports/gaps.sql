-- Everything that is missing, longest first.
SELECT coalesce(t.name || ' ' || t.tid, 'CPU ' || g.cpu, 'all') AS track, g.start_ns, g.end_ns - g.start_ns AS duration_ns, g.reason, g.detail,
       g.bytes
FROM gap g
LEFT JOIN thread t ON t.id = g.thread_id
ORDER BY g.end_ns - g.start_ns DESC, g.start_ns, g.id
LIMIT coalesce(:limit, 200)
