-- The call tree: every call path with its calls and times, the longest first, indented by depth.
-- :depth cuts it (64); paths under a thousandth of their thread's time are left out.
WITH RECURSIVE walk(id, thread_id, path, up, depth) AS (
    SELECT id, thread_id, printf('%x', symbol_id), '', 0 FROM call WHERE parent_id IS NULL
    UNION ALL
    SELECT c.id, c.thread_id, w.path || '/' || printf('%x', c.symbol_id), w.path, w.depth + 1
    FROM walk w JOIN call c ON c.parent_id = w.id
    WHERE w.depth < coalesce(:depth, 64)
    ORDER BY 5 DESC
),
node AS MATERIALIZED (
    SELECT w.thread_id, w.path, w.up, w.depth, c.symbol_id, count(*) AS calls, sum(c.duration_ns) AS total_ns, sum(c.self_ns) AS self_ns,
           max(c.duration_ns) AS max_ns
    FROM walk w JOIN call c ON c.id = w.id
    GROUP BY w.thread_id, w.path
),
whole AS MATERIALIZED (SELECT thread_id, sum(total_ns) AS ns FROM node WHERE depth = 0 GROUP BY thread_id),
-- The order of a path is that of its parent and then its own time.
line(thread_id, path, depth, place) AS (
    SELECT thread_id, path, depth, printf('%019d', 9223372036854775807 - total_ns) || path FROM node WHERE depth = 0
    UNION ALL
    SELECT n.thread_id, n.path, n.depth, l.place || printf('/%019d', 9223372036854775807 - n.total_ns) || n.path
    FROM line l JOIN node n ON n.thread_id = l.thread_id AND n.up = l.path
    JOIN whole w ON w.thread_id = n.thread_id
    WHERE n.total_ns * 1000 >= w.ns
)
SELECT t.name || ' ' || t.tid AS thread, n.calls, n.total_ns, round(100.0 * n.total_ns / max(w.ns, 1), 1) AS percent, n.self_ns, n.max_ns,
       substr('                                                                                ', 1, min(2 * n.depth, 80)) || s.name AS function,
       EXISTS (SELECT 1 FROM meta WHERE key = 'samples') AS sampled
FROM line l
JOIN node n ON n.thread_id = l.thread_id AND n.path = l.path
JOIN whole w ON w.thread_id = l.thread_id
JOIN thread t ON t.id = l.thread_id
JOIN symbol s ON s.id = n.symbol_id
ORDER BY w.ns DESC, l.thread_id, l.place
LIMIT coalesce(:limit, 200)
