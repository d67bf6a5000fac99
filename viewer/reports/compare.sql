-- What got slower from this trace to the other one (attached as b): functions by the change of their mean, and call paths that are new
-- or gone. Of a new path only its topmost new function is a line; "new path" tells that the function itself was there before.
WITH RECURSIVE fa AS MATERIALIZED (
    SELECT function, module, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(self_ns) AS self_ns FROM main.functions GROUP BY 1, 2
),
fb AS MATERIALIZED (
    SELECT function, module, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(self_ns) AS self_ns FROM b.functions GROUP BY 1, 2
),
wa(id, path, up, depth) AS (
    SELECT c.id, s.name, '', 0 FROM main.call c JOIN main.symbol s ON s.id = c.symbol_id WHERE c.parent_id IS NULL
    UNION ALL
    SELECT c.id, w.path || ' > ' || s.name, w.path, w.depth + 1
    FROM wa w JOIN main.call c ON c.parent_id = w.id JOIN main.symbol s ON s.id = c.symbol_id
    WHERE w.depth < coalesce(:depth, 64)
    ORDER BY 4 DESC
),
wb(id, path, up, depth) AS (
    SELECT c.id, s.name, '', 0 FROM b.call c JOIN b.symbol s ON s.id = c.symbol_id WHERE c.parent_id IS NULL
    UNION ALL
    SELECT c.id, w.path || ' > ' || s.name, w.path, w.depth + 1
    FROM wb w JOIN b.call c ON c.parent_id = w.id JOIN b.symbol s ON s.id = c.symbol_id
    WHERE w.depth < coalesce(:depth, 64)
    ORDER BY 4 DESC
),
pa AS MATERIALIZED (
    SELECT w.path, w.up, count(*) AS calls, sum(c.duration_ns) AS total_ns, min(s.name) AS function
    FROM wa w JOIN main.call c ON c.id = w.id JOIN main.symbol s ON s.id = c.symbol_id GROUP BY w.path
),
pb AS MATERIALIZED (
    SELECT w.path, w.up, count(*) AS calls, sum(c.duration_ns) AS total_ns, min(s.name) AS function
    FROM wb w JOIN b.call c ON c.id = w.id JOIN b.symbol s ON s.id = c.symbol_id GROUP BY w.path
),
line AS (
    SELECT 'function' AS what, fb.function AS name, fa.calls AS calls_a, fb.calls AS calls_b, fa.total_ns / fa.calls AS mean_a_ns,
           fb.total_ns / fb.calls AS mean_b_ns, fb.total_ns / fb.calls - fa.total_ns / fa.calls AS change_ns, fa.total_ns AS total_a_ns,
           fb.total_ns AS total_b_ns, fb.total_ns - fa.total_ns AS weight, '' AS note
    FROM fb JOIN fa ON fa.function = fb.function AND fa.module = fb.module
    UNION ALL
    SELECT 'function', function, 0, calls, NULL, total_ns / calls, NULL, 0, total_ns, total_ns, 'new'
    FROM fb WHERE NOT EXISTS (SELECT 1 FROM fa WHERE fa.function = fb.function AND fa.module = fb.module)
    UNION ALL
    SELECT 'function', function, calls, 0, total_ns / calls, NULL, NULL, total_ns, 0, -total_ns, 'gone'
    FROM fa WHERE NOT EXISTS (SELECT 1 FROM fb WHERE fb.function = fa.function AND fb.module = fa.module)
    UNION ALL
    SELECT 'path', path, 0, calls, NULL, total_ns / calls, NULL, 0, total_ns, total_ns,
           CASE WHEN function IN (SELECT function FROM fa) THEN 'new path' ELSE 'new' END
    FROM pb WHERE path NOT IN (SELECT path FROM pa) AND (up = '' OR up IN (SELECT path FROM pa))
    UNION ALL
    SELECT 'path', path, calls, 0, total_ns / calls, NULL, NULL, total_ns, 0, -total_ns,
           CASE WHEN function IN (SELECT function FROM fb) THEN 'path gone' ELSE 'gone' END
    FROM pa WHERE path NOT IN (SELECT path FROM pb) AND (up = '' OR up IN (SELECT path FROM pb))
    UNION ALL
    SELECT 'path', pb.path, pa.calls, pb.calls, pa.total_ns / pa.calls, pb.total_ns / pb.calls,
           pb.total_ns / pb.calls - pa.total_ns / pa.calls, pa.total_ns, pb.total_ns, pb.total_ns - pa.total_ns, ''
    FROM pb JOIN pa ON pa.path = pb.path
)
SELECT what, note, calls_a, calls_b, mean_a_ns, mean_b_ns, change_ns, total_a_ns, total_b_ns, name,
       EXISTS (SELECT 1 FROM main.meta WHERE key = 'samples') OR EXISTS (SELECT 1 FROM b.meta WHERE key = 'samples') AS sampled
FROM line
WHERE weight <> 0 OR calls_a <> calls_b
ORDER BY what, weight DESC, name
LIMIT coalesce(:limit, 100)
