-- Functions by the time they took themselves: without what they called, and without time off the CPU.
-- total: what they called and time off the CPU included, nested calls of one function once. p50 to max are of single calls.
WITH top AS (
    SELECT symbol_id, count(*) AS calls, sum(self_ns) AS self_ns,
           sum(CASE WHEN flags & 256 THEN 0 ELSE duration_ns END) AS total_ns, max(duration_ns) AS max_ns
    FROM call
    GROUP BY symbol_id
    ORDER BY 3 DESC, 4 DESC, 1
    LIMIT coalesce(:limit, 40)
)
SELECT s.name AS function, m.name AS module, t.calls, t.self_ns, t.total_ns,
       (SELECT percentile(c.duration_ns, 50) FROM call c WHERE c.symbol_id = t.symbol_id) AS p50_ns,
       (SELECT percentile(c.duration_ns, 90) FROM call c WHERE c.symbol_id = t.symbol_id) AS p90_ns,
       (SELECT percentile(c.duration_ns, 99) FROM call c WHERE c.symbol_id = t.symbol_id) AS p99_ns, t.max_ns
FROM top t
JOIN symbol s ON s.id = t.symbol_id
JOIN module m ON m.id = s.module_id
ORDER BY t.self_ns DESC, t.total_ns DESC, function
