-- Where threads lost the CPU: by the function they were in, the longest in all first.
SELECT t.name AS thread, t.tid, coalesce(s.name, '[not recorded]') AS function,
       CASE o.preempted WHEN 1 THEN 'preempted' ELSE 'waiting' END AS state, count(*) AS times, sum(o.end_ns - o.start_ns) AS total_ns,
       percentile(o.end_ns - o.start_ns, 50) AS p50_ns, max(o.end_ns - o.start_ns) AS longest_ns
FROM offcpu o
JOIN thread t ON t.id = o.thread_id
LEFT JOIN call c ON c.id = o.call_id
LEFT JOIN symbol s ON s.id = c.symbol_id
GROUP BY t.id, c.symbol_id, o.preempted
ORDER BY total_ns DESC, t.tid, function
LIMIT coalesce(:limit, 40)
