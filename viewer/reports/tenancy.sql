-- Which thread ran on which CPU: how often, how long, and what part of that CPU's recorded time.
SELECT t.name AS thread, t.tid, l.cpu, count(*) AS times, sum(l.end_ns - l.start_ns) AS total_ns,
       round(100.0 * sum(l.end_ns - l.start_ns) / max(1, (SELECT max(a.end_ns) - min(a.start_ns) FROM slice a WHERE a.cpu = l.cpu)), 1)
           AS percent_of_cpu,
       max(l.end_ns - l.start_ns) AS longest_ns
FROM slice l
JOIN thread t ON t.id = l.thread_id
GROUP BY l.thread_id, l.cpu
ORDER BY total_ns DESC, t.tid, l.cpu
LIMIT coalesce(:limit, 100)
