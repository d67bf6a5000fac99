-- Most of the time the thread had a CPU: no wait is the cause. Which function it was is known by every branch, or by the samples that fell
-- into the stall; without one nobody knows. A stall that is time off the CPU is none: the moments in which the switches themselves run are in it.
WITH l AS (SELECT * FROM stall WHERE id = ?1 AND kind NOT IN ('offcpu', 'runq')),
     sums AS (SELECT what, sum(end_ns - start_ns) AS ns FROM part GROUP BY what),
     ran AS (SELECT ns FROM sums WHERE what = 'running' AND ns = (SELECT max(ns) FROM sums)),
     most AS (SELECT * FROM part_function ORDER BY ns DESC, function LIMIT 1),
     known AS (SELECT EXISTS (SELECT 1 FROM most WHERE samples IS NULL OR samples > 0) AS yes)
SELECT 'computing' || CASE WHEN known.yes THEN coalesce(' in ' || (SELECT function FROM part_within) || '()', '') ELSE '' END AS cause,
       'the thread ran for ' || duration(ran.ns) || ' of the ' || duration(l.duration_ns) || CASE WHEN known.yes
           THEN coalesce((SELECT ', ' || CASE WHEN samples IS NULL THEN '' ELSE '≈ ' END || duration(min(most.ns, ran.ns)) || ' of that in ' || function || '() itself' FROM most), '') ||
                coalesce(' (by ' || (SELECT samples FROM most) || ' samples)', '')
           ELSE '; in what, no sample tells (arm --frequency takes more of them)' END AS evidence
FROM l JOIN ran JOIN known
WHERE ran.ns * 3 >= l.duration_ns
