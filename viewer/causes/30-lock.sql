-- A futex wait that is not on the idle list is a lock: the thread that woke it had held the lock. What that thread was doing is
-- its innermost call outside the C library at that moment.
SELECT 'lock contention' AS cause,
       'woken by ' || coalesce(l.waker, 'nobody yet') || coalesce(' in ' || (
           SELECT s.name
           FROM call c JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id
           WHERE c.thread_id = l.waker_thread_id AND c.start_ns <= l.wake_ns AND c.start_ns + c.duration_ns >= l.wake_ns
             AND NOT m.kernel AND m.name NOT LIKE 'libc%' AND m.name NOT LIKE 'libpthread%' AND s.name NOT LIKE '%@plt'
           ORDER BY c.depth DESC LIMIT 1) || '()', '') || ', which let go of the lock' AS evidence
FROM stall l
WHERE l.id = ?1 AND l.syscall = 'futex' AND l.end_ns IS NOT NULL AND l.waker_thread_id IS NOT NULL
UNION ALL
SELECT 'lock contention', 'the lock is still held: nobody has woken the thread'
FROM stall l
WHERE l.id = ?1 AND l.syscall = 'futex' AND l.end_ns IS NULL
