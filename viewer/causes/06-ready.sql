-- Most of the time the thread could have run and had no CPU: after it was woken, or between stretches of running. Of a thread that was
-- ready to run all the time, the rules 60 to 70 tell more.
WITH l AS (SELECT * FROM stall WHERE id = ?1 AND NOT (kind IN ('offcpu', 'runq') AND state = 'runnable')),
     sums AS (SELECT what, sum(end_ns - start_ns) AS ns, count(*) AS times FROM part GROUP BY what),
     ready AS (SELECT ns, times FROM sums WHERE what = 'ready' AND ns = (SELECT max(ns) FROM sums)),
     had AS (SELECT who, sum(who_ns) AS ns FROM part WHERE what = 'ready' AND who LIKE 'thread %' GROUP BY who ORDER BY coalesce(sum(who_ns), 0) DESC, sum(end_ns - start_ns) DESC LIMIT 1)
SELECT CASE WHEN had.ns * 2 >= ready.ns THEN 'CPU taken by other work' ELSE 'ready without a CPU' END AS cause,
       'the thread was ready to run for ' || duration(ready.ns) || ' of the ' || duration(l.duration_ns) ||
       CASE WHEN ready.times > 1 THEN ' (' || ready.times || ' times)' ELSE '' END ||
       CASE WHEN had.who IS NULL
            THEN ': who had the CPU is not recorded (runq tells, or arm -a); a CPU quota of its control group looks the same'
            WHEN had.ns IS NULL THEN ': ' || had.who || ' got its CPU, for how long is not recorded'
            ELSE ': ' || had.who || ' had its CPU for ' || duration(had.ns) ||
                 CASE WHEN had.ns * 2 < ready.ns THEN ', who had it otherwise is not recorded (arm -a tells)' ELSE '' END END AS evidence
FROM l JOIN ready LEFT JOIN had
WHERE ready.ns * 3 >= l.duration_ns
