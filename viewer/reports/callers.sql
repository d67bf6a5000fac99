-- Who calls :function (a name, or a pattern with *), and how long its calls from there take.
SELECT coalesce(ps.name, '[outermost]') AS caller, pm.name AS module, s.name AS function, count(*) AS calls, sum(c.duration_ns) AS total_ns,
       sum(c.self_ns) AS self_ns, percentile(c.duration_ns, 50) AS p50_ns, max(c.duration_ns) AS max_ns,
       EXISTS (SELECT 1 FROM meta WHERE key = 'samples') AS sampled
FROM symbol s
JOIN call c ON c.symbol_id = s.id
LEFT JOIN call p ON p.id = c.parent_id
LEFT JOIN symbol ps ON ps.id = p.symbol_id
LEFT JOIN module pm ON pm.id = ps.module_id
WHERE s.name = :function OR s.name GLOB :function
GROUP BY p.symbol_id, s.id
ORDER BY total_ns DESC, calls DESC, caller
LIMIT coalesce(:limit, 40)
