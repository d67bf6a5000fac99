-- Where threads lost the CPU: by the function they were in.
SELECT t.name AS thread, t.tid, coalesce(c.function, '?') AS function, CASE o.preempted WHEN 1 THEN 'preempted' ELSE 'waiting' END AS state,
       count(*) AS times, duration(sum(o.end_ns - o.start_ns)) AS total, duration(max(o.end_ns - o.start_ns)) AS longest
FROM offcpu o
JOIN thread t ON t.id = o.thread_id
LEFT JOIN calls c ON c.id = o.call_id
GROUP BY t.id, function, state
ORDER BY sum(o.end_ns - o.start_ns) DESC
LIMIT 40
