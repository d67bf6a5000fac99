-- Functions by the time they took themselves: without what they called, and without time off the CPU.
-- total: what they called and time off the CPU included, nested calls of one function once. p50 to max are of single calls. sampled, of calls made of samples:
-- 2: max took as long or longer, 3: it may be several of which none took longer, 1: else.
WITH counted AS (
    SELECT symbol_id, calls, self_ns, total_ns, max_ns FROM function_summary
    UNION ALL
    SELECT symbol_id, count(*), sum(self_ns), sum(CASE WHEN flags & 256 THEN 0 ELSE duration_ns END), max(duration_ns)
    FROM call
    WHERE NOT EXISTS (SELECT 1 FROM function_summary)
    GROUP BY symbol_id
), top AS MATERIALIZED (
    SELECT * FROM counted ORDER BY self_ns DESC, total_ns DESC, symbol_id LIMIT coalesce(:limit, 40)
), spread AS MATERIALIZED (
    SELECT t.*, (SELECT percentiles(c.duration_ns, 50, 90, 99) FROM call c WHERE c.symbol_id = t.symbol_id) AS p FROM top t
)
SELECT s.name AS function, m.name AS module, t.calls, t.self_ns, t.total_ns, t.p ->> 0 AS p50_ns, t.p ->> 1 AS p90_ns, t.p ->> 2 AS p99_ns,
       t.max_ns,
       CASE WHEN EXISTS (SELECT 1 FROM meta WHERE key = 'samples') THEN coalesce((SELECT CASE WHEN c.flags & 192 = 128 THEN 2
           WHEN c.flags & 195 = 64 THEN 3 END FROM call c WHERE c.symbol_id = t.symbol_id AND c.duration_ns = t.max_ns LIMIT 1), 1) ELSE 0 END AS sampled
FROM spread t
JOIN symbol s ON s.id = t.symbol_id
JOIN module m ON m.id = s.module_id
ORDER BY t.self_ns DESC, t.total_ns DESC, function
