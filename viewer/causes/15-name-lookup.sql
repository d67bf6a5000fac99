-- The answer that ended the wait came from port 53: a name server's. (Names found in /etc/hosts, or by a daemon behind a local socket,
-- are not seen as look-ups.)
WITH RECURSIVE l AS (SELECT *, start_ns + duration_ns / 2 AS mid FROM wait WHERE kind <> 'socket'),
     open(id) AS ( -- what was open in its middle: the last call that began before it, and the callers of that
         SELECT * FROM (SELECT c.id FROM l JOIN call c ON c.id >= (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns < l.mid
                 ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)
             AND c.id < (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns >= l.mid + 1 ORDER BY k.start_ns, k.id LIMIT 1)
             AND c.thread_id = l.thread_id AND c.start_ns <= l.mid ORDER BY c.start_ns DESC, c.id DESC LIMIT 1)
         UNION SELECT c.parent_id FROM open JOIN call c ON c.id = open.id WHERE c.parent_id IS NOT NULL)
SELECT 'name look-up' AS cause,
       'the thread waited ' || duration(l.duration_ns) || ' in ' || coalesce(l.syscall, '?') || ' for the name server ' || p.value ||
       coalesce(', called by ' || (
           SELECT s.name FROM open JOIN call c ON c.id = open.id JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id
           WHERE c.start_ns + c.duration_ns >= l.mid AND NOT m.kernel
             AND m.name NOT LIKE 'libc.%' AND m.name NOT LIKE 'libc-%' AND m.name NOT LIKE 'libresolv%' AND m.name NOT LIKE 'libnss%'
             AND s.name NOT LIKE '%@plt'
           ORDER BY c.depth DESC LIMIT 1) || '()', '') AS evidence
FROM l
JOIN stall_attr p ON p.stall_id = l.id AND p.key = 'peer' AND p.value LIKE '%:53'
WHERE EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
              WHERE k.id = l.waker_stack_id AND s.name = 'sock_def_readable')
