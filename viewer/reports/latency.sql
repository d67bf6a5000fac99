-- How long the calls of :function (a name, or a pattern with *) took: a histogram by powers of two, and which part of all calls had
-- ended up to there.
WITH RECURSIVE counted AS MATERIALIZED (
    SELECT bucket(c.duration_ns) AS from_ns, count(*) AS calls
    FROM symbol s JOIN call c ON c.symbol_id = s.id
    WHERE s.name = :function OR s.name GLOB :function
    GROUP BY 1
),
-- Empty buckets between full ones have a line too.
line(from_ns) AS (
    SELECT min(from_ns) FROM counted
    UNION ALL
    SELECT max(2 * from_ns, 1) FROM line WHERE from_ns < (SELECT max(from_ns) FROM counted)
)
SELECT l.from_ns, max(2 * l.from_ns, 1) AS to_ns, coalesce(c.calls, 0) AS calls,
       round(100.0 * coalesce(c.calls, 0) / (SELECT sum(calls) FROM counted), 2) AS percent,
       round(100.0 * (SELECT sum(b.calls) FROM counted b WHERE b.from_ns <= l.from_ns) / (SELECT sum(calls) FROM counted), 2) AS up_to_here,
       bar(coalesce(c.calls, 0), (SELECT max(calls) FROM counted), 40) AS histogram,
       EXISTS (SELECT 1 FROM meta WHERE key = 'samples') AS sampled
FROM line l
LEFT JOIN counted c ON c.from_ns = l.from_ns
WHERE l.from_ns IS NOT NULL
ORDER BY l.from_ns
