-- System calls: how many, how long, and which part of that they waited (blocked) or had to wait for a CPU (preempted); the rest is
-- work. Where the kernel was not traced, a system call has the name of the function that made it. bytes_a_call: from the stall
-- records that tell it.
WITH made AS MATERIALIZED (
    SELECT c.id, CASE WHEN s.name = '[syscall]' THEN coalesce(ps.name, '[not known]') ELSE substr(s.name, 11) END AS syscall, c.duration_ns,
           (SELECT coalesce(sum(o.end_ns - o.start_ns), 0) FROM offcpu o
            WHERE o.thread_id = c.thread_id AND NOT o.preempted AND o.start_ns >= c.start_ns AND o.start_ns < c.start_ns + c.duration_ns)
               AS blocked_ns,
           (SELECT coalesce(sum(o.end_ns - o.start_ns), 0) FROM offcpu o
            WHERE o.thread_id = c.thread_id AND o.preempted AND o.start_ns >= c.start_ns AND o.start_ns < c.start_ns + c.duration_ns)
               AS preempted_ns,
           (SELECT a.value FROM stall l JOIN stall_attr a ON a.stall_id = l.id AND a.key = 'bytes'
            WHERE l.thread_id = c.thread_id AND l.start_ns >= c.start_ns AND l.start_ns < c.start_ns + c.duration_ns LIMIT 1) AS bytes
    FROM symbol s
    JOIN call c ON c.symbol_id = s.id
    LEFT JOIN call p ON p.id = c.parent_id
    LEFT JOIN symbol ps ON ps.id = p.symbol_id
    WHERE s.name = '[syscall]' OR s.name GLOB '__x64_sys_*'
)
SELECT syscall, count(*) AS calls, sum(duration_ns) AS total_ns, sum(blocked_ns) AS blocked_ns, sum(preempted_ns) AS preempted_ns,
       sum(max(0, duration_ns - blocked_ns - preempted_ns)) AS work_ns, sum(blocked_ns > 0) AS blocking_calls, max(duration_ns) AS max_ns,
       round(avg(bytes), 1) AS bytes_a_call
FROM made
GROUP BY syscall
ORDER BY total_ns DESC, syscall
LIMIT coalesce(:limit, 60)
