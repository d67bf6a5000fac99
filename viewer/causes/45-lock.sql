-- A wait for a lock that another thread held. Which futex waits are one: FUTEX_WAIT (0) on the value 2, "taken, and somebody waits", as
-- the mutexes of glibc and Go have it; FUTEX_LOCK_PI (6, 13); or any in whose call path a function that locks stands. Barriers,
-- semaphores, joins and condition variables wait by futex as well and are none.
-- The thread that woke it had held the lock, in its innermost call outside of the C library as it let go, by the calls that were open
-- then, or by its stack. What it did is the innermost such
-- call that lasted half of the wait.
WITH RECURSIVE l AS (SELECT wait.*, start_ns + duration_ns / 2 AS mid,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'arg1' AND has_args) & 127 AS op,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'arg2' AND has_args) & 0xffffffff AS val
           FROM wait WHERE syscall = 'futex'),
     open(id) AS ( -- what was open in its middle: the last call that began before it, and the callers of that
         SELECT * FROM (SELECT c.id FROM l JOIN call c ON c.id >= (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns < l.mid
                 ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)
             AND c.id < (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns >= l.mid + 1 ORDER BY k.start_ns, k.id LIMIT 1)
             AND c.thread_id = l.thread_id AND c.start_ns <= l.mid ORDER BY c.start_ns DESC, c.id DESC LIMIT 1)
         UNION SELECT c.parent_id FROM open JOIN call c ON c.id = open.id WHERE c.parent_id IS NOT NULL),
     path(name) AS (
         SELECT s.name FROM l JOIN stack k ON k.id = l.user_stack_id JOIN symbol s ON s.id = k.symbol_id
         UNION ALL
         SELECT s.name FROM l JOIN open JOIN call c ON c.id = open.id AND c.start_ns + c.duration_ns >= l.mid JOIN symbol s ON s.id = c.symbol_id),
     during(id) AS ( -- calls of the thread that woke it which may have been open in the wait, those open at its beginning included
         SELECT * FROM (SELECT c.id FROM l JOIN call c ON c.id >= coalesce(
                 (SELECT k.id FROM call_time k WHERE k.thread_id = l.waker_thread_id AND k.start_ns < l.start_ns ORDER BY k.start_ns DESC, k.id DESC LIMIT 1),
                 (SELECT k.id FROM call_time k WHERE k.thread_id = l.waker_thread_id ORDER BY k.start_ns, k.id LIMIT 1))
             AND c.id < coalesce(
                 (SELECT k.id FROM call_time k WHERE k.thread_id = l.waker_thread_id AND k.start_ns >= l.wake_ns + 1 ORDER BY k.start_ns, k.id LIMIT 1),
                 (SELECT k.id + 1 FROM call_time k WHERE k.thread_id = l.waker_thread_id ORDER BY k.start_ns DESC, k.id DESC LIMIT 1))
             AND c.thread_id = l.waker_thread_id)
         UNION SELECT c.parent_id FROM during d JOIN call c ON c.id = d.id WHERE c.parent_id IS NOT NULL),
     of_its_own(symbol_id) AS (
         SELECT s.id FROM symbol s JOIN module m ON m.id = s.module_id
         WHERE NOT m.kernel AND m.name NOT LIKE 'libc.%' AND m.name NOT LIKE 'libc-%' AND m.name NOT LIKE 'libpthread%'
           AND m.name NOT LIKE 'ld-%' AND m.name NOT LIKE '[%' AND s.name NOT LIKE '%@plt' AND s.name NOT LIKE '[%'),
     open_then(symbol_id, depth, overlap, at_wake, sampled) AS (
         SELECT c.symbol_id, c.depth,
                min(c.start_ns + c.duration_ns, l.wake_ns) - max(c.start_ns, l.start_ns),
                c.start_ns <= l.wake_ns AND c.start_ns + c.duration_ns >= l.wake_ns, c.flags & 32
         FROM l JOIN during d JOIN call c ON c.id = d.id AND c.start_ns <= l.wake_ns AND c.start_ns + c.duration_ns >= l.start_ns
             JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id
         WHERE NOT m.kernel),
     held(name, depth, overlap, at_wake, sampled) AS (
         SELECT s.name, o.depth, o.overlap, o.at_wake, o.sampled
         FROM open_then o JOIN symbol s ON s.id = o.symbol_id WHERE o.symbol_id IN (SELECT symbol_id FROM of_its_own)),
     frames(symbol_id, depth) AS ( -- of the thread that woke it, as it did
         SELECT k.symbol_id, k.depth FROM l JOIN stall_attr a ON a.stall_id = l.id AND a.key = 'waker_user_stack_id' JOIN stack k ON k.id = a.value),
     same(moment) AS ( -- a sampled call may have begun behind the wake-up: it has the frames of that, or it is not believed
         SELECT (SELECT symbol_id FROM open_then WHERE at_wake ORDER BY depth DESC LIMIT 1) = (SELECT symbol_id FROM frames ORDER BY depth LIMIT 1)),
     freed(name) AS (
         SELECT name FROM (
             SELECT name, 0 AS source, -depth AS at FROM held WHERE at_wake AND (NOT sampled OR (SELECT moment FROM same))
             UNION ALL
             SELECT s.name, 1, f.depth FROM frames f JOIN symbol s ON s.id = f.symbol_id WHERE f.symbol_id IN (SELECT symbol_id FROM of_its_own))
         ORDER BY source, at LIMIT 1),
     doing(name) AS (SELECT held.name FROM held, l WHERE overlap * 2 >= l.duration_ns ORDER BY depth DESC LIMIT 1),
     off(ns) AS (
         SELECT sum(min(o.end_ns, l.wake_ns) - max(o.start_ns, l.start_ns)) FROM l JOIN offcpu o
         ON o.thread_id = l.waker_thread_id AND o.start_ns < l.wake_ns AND o.end_ns > l.start_ns)
SELECT 'lock contention' AS cause,
       CASE WHEN l.end_ns IS NULL THEN 'the lock is still held: nobody has woken the thread'
            ELSE 'held by ' || coalesce(l.waker, 'a thread that is not known') ||
                 coalesce(' in ' || (SELECT name FROM freed) || '()', '') ||
                 coalesce(', most of the time in ' || (SELECT name FROM doing WHERE name IS NOT (SELECT name FROM freed)) || '()', '') ||
                 CASE WHEN (SELECT ns FROM off) * 2 > l.duration_ns
                      THEN ', which was itself off its CPU for ' || duration((SELECT ns FROM off)) || ' of it' ELSE '' END ||
                 ', until it let go of the lock' END AS evidence
FROM l
WHERE (l.end_ns IS NULL OR l.waker_thread_id IS NOT NULL OR l.waker LIKE 'thread %')
  AND ((l.op = 0 AND l.val = 2) OR l.op IN (6, 13)
       OR EXISTS (SELECT 1 FROM path WHERE name IN ('pthread_mutex_lock', '__pthread_mutex_lock', '___pthread_mutex_lock',
                  '__GI___pthread_mutex_lock', 'pthread_mutex_timedlock', 'pthread_mutex_clocklock', 'pthread_rwlock_rdlock',
                  'pthread_rwlock_wrlock', '__pthread_rwlock_rdlock', '__pthread_rwlock_wrlock', '___pthread_rwlock_rdlock',
                  '___pthread_rwlock_wrlock', '__lll_lock_wait', '__lll_lock_wait_private', '__GI___lll_lock_wait', 'mtx_lock',
                  'runtime.lock2') OR name LIKE '%lock_contended%' OR name LIKE '%::mutex::lock%' OR name LIKE '%Mutex::Lock%'))
