-- The answer that ended the wait came from port 53: a name server's. (Names found in /etc/hosts, or by a daemon behind a local socket,
-- are not seen as look-ups.)
SELECT 'name look-up' AS cause,
       'the thread waited ' || duration(l.duration_ns) || ' in ' || coalesce(l.syscall, '?') || ' for the name server ' || p.value ||
       coalesce(', called by ' || (
           SELECT s.name FROM call c JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id
           WHERE c.thread_id = l.thread_id AND c.start_ns <= l.start_ns + l.duration_ns / 2
             AND c.start_ns + c.duration_ns >= l.start_ns + l.duration_ns / 2 AND NOT m.kernel
             AND m.name NOT LIKE 'libc.%' AND m.name NOT LIKE 'libc-%' AND m.name NOT LIKE 'libresolv%' AND m.name NOT LIKE 'libnss%'
             AND s.name NOT LIKE '%@plt'
           ORDER BY c.depth DESC LIMIT 1) || '()', '') AS evidence
FROM stall l
JOIN stall_attr p ON p.stall_id = l.id AND p.key = 'peer' AND p.value LIKE '%:53'
WHERE l.id = ?1
  AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
              WHERE k.id = l.waker_stack_id AND s.name = 'sock_def_readable')
