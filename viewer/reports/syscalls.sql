-- System calls: how many, how long, and which part of that they waited (blocked) or had to wait for a CPU (preempted); the rest is
-- work. Where the kernel was not traced, a system call has the name of the function that made it. Of a sampled thread each call is known
-- by the marks of `arm --syscalls`, and only a few are among its calls: there the marks count. bytes_a_call: by those marks, or from the
-- stall records that tell it.
WITH point AS MATERIALIZED (
    SELECT thread_id, time_ns, name, detail, lag(name) OVER w AS before, lag(time_ns) OVER w AS start_ns FROM mark
    WHERE name IN ('syscall', 'sysret') WINDOW w AS (PARTITION BY thread_id ORDER BY time_ns, id)
), marked AS MATERIALIZED (
    SELECT thread_id, start_ns, time_ns - start_ns AS duration_ns, substr(detail, 1, instr(detail, ' ') - 1) AS syscall,
           CAST(substr(detail, instr(detail, ' = ') + 3) AS integer) AS result
    FROM point WHERE name = 'sysret' AND before = 'syscall'
), made AS MATERIALIZED (
    SELECT syscall, duration_ns,
           (SELECT coalesce(sum(o.end_ns - o.start_ns), 0) FROM offcpu o
            WHERE o.thread_id = m.thread_id AND NOT o.preempted AND o.start_ns >= m.start_ns AND o.start_ns < m.start_ns + m.duration_ns)
               AS blocked_ns,
           (SELECT coalesce(sum(o.end_ns - o.start_ns), 0) FROM offcpu o
            WHERE o.thread_id = m.thread_id AND o.preempted AND o.start_ns >= m.start_ns AND o.start_ns < m.start_ns + m.duration_ns)
               AS preempted_ns,
           CASE WHEN result >= 0 AND syscall IN (
            'read', 'write', 'pread64', 'pwrite64', 'readv', 'writev', 'preadv', 'pwritev', 'preadv2', 'pwritev2', 'sendto',
            'recvfrom', 'sendmsg', 'recvmsg', 'sendfile', 'splice', 'vmsplice', 'tee', 'copy_file_range', 'process_vm_readv',
            'process_vm_writev', 'getrandom')
           THEN result END AS bytes
    FROM marked m
    UNION ALL
    SELECT CASE WHEN s.name = '[syscall]' THEN coalesce(ps.name, '[not known]') ELSE substr(s.name, 11) END AS syscall, c.duration_ns,
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
    WHERE (s.name = '[syscall]' OR s.name GLOB '__x64_sys_*') AND c.thread_id NOT IN (SELECT thread_id FROM marked)
)
SELECT syscall, count(*) AS calls, sum(duration_ns) AS total_ns, sum(blocked_ns) AS blocked_ns, sum(preempted_ns) AS preempted_ns,
       sum(max(0, duration_ns - blocked_ns - preempted_ns)) AS work_ns, sum(blocked_ns > 0) AS blocking_calls, max(duration_ns) AS max_ns,
       round(avg(bytes), 1) AS bytes_a_call,
       EXISTS (SELECT 1 FROM meta WHERE key = 'samples') AND NOT EXISTS (SELECT 1 FROM marked) AS sampled
FROM made
GROUP BY syscall
ORDER BY total_ns DESC, syscall
LIMIT coalesce(:limit, 60)
