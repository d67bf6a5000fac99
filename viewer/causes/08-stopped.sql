-- Somebody stopped the thread: by a signal (SIGSTOP, Ctrl-Z), or it is traced (a debugger, strace).
WITH l AS (SELECT * FROM stall WHERE id = ?1),
     stops AS (SELECT state, sum(end_ns - start_ns) AS ns, count(*) AS times FROM part WHERE what = 'waiting' AND state IN ('stopped', 'tracing stop')
               GROUP BY state ORDER BY ns DESC LIMIT 1),
     went_on(who) AS (SELECT who FROM part WHERE what = 'waiting' AND state = (SELECT state FROM stops) AND who LIKE 'thread %'
                      ORDER BY end_ns - start_ns DESC LIMIT 1)
SELECT 'stopped' AS cause,
       CASE stops.state WHEN 'stopped' THEN 'a signal stopped the thread for ' ELSE 'a tracer (a debugger, strace) held the thread for ' END ||
       duration(stops.ns) || ' of the ' || duration(l.duration_ns) || CASE WHEN stops.times > 1 THEN ' (' || stops.times || ' times)' ELSE '' END ||
       coalesce('; ' || (SELECT who FROM went_on) || ' let it go on', '') AS evidence
FROM l JOIN stops
WHERE stops.ns * 3 >= l.duration_ns
