-- The slowest call of :function (a name, or a pattern with *), opened: what it called, in the order of time. Calls under a
-- two-hundredth of it are left out; off_cpu is the wait in the call itself. sampled, of calls made of samples:
-- 2: it took as long or longer, 3: it may be several of which none took longer, 1: else.
WITH RECURSIVE worst AS MATERIALIZED (
    SELECT c.id, c.start_ns, c.duration_ns
    FROM symbol s JOIN call c ON c.symbol_id = s.id
    WHERE s.name = :function OR s.name GLOB :function
    ORDER BY c.duration_ns DESC, c.start_ns, c.id
    LIMIT 1
),
opened(id, depth, start_ns) AS (
    SELECT id, 0, start_ns FROM worst
    UNION ALL
    SELECT c.id, o.depth + 1, c.start_ns
    FROM opened o JOIN call c ON c.parent_id = o.id
    WHERE c.duration_ns * 200 >= (SELECT duration_ns FROM worst) AND o.depth < 1000
)
SELECT t.name || ' ' || t.tid AS thread, o.start_ns - w.start_ns AS after_ns, c.duration_ns, c.self_ns,
       (SELECT sum(f.end_ns - f.start_ns) FROM offcpu f WHERE f.call_id = c.id) AS off_cpu_ns,
       substr('                                                                                ', 1, min(2 * o.depth, 80)) || s.name AS function,
       m.name AS module, CASE WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'samples') THEN 0
       WHEN c.flags & 192 = 128 THEN 2 WHEN c.flags & 195 = 64 THEN 3 ELSE 1 END AS sampled
FROM opened o
JOIN call c ON c.id = o.id
JOIN worst w
JOIN thread t ON t.id = c.thread_id
JOIN symbol s ON s.id = c.symbol_id
JOIN module m ON m.id = s.module_id
ORDER BY o.start_ns, o.depth, o.id
LIMIT coalesce(:limit, 200)
