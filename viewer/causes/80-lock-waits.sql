-- As 45-lock.sql, of a stall that is no single wait: most of it the thread waited for locks, once or many times. A wait is one for a lock
-- where a function that locks stands in its call path, and another thread ended it.
WITH l AS (SELECT * FROM stall WHERE id = ?1 AND kind <> 'offcpu'),
     waits AS (SELECT sum(end_ns - start_ns) AS ns, count(*) AS times, max(end_ns - start_ns) AS longest, max(place) AS place, count(DISTINCT who) AS holders,
                      max(who) AS who
               FROM part
               WHERE what = 'waiting' AND syscall = 'futex' AND who LIKE 'thread %'
                 AND (place LIKE '%pthread_mutex_%lock%' OR place LIKE '%pthread_rwlock_%lock%' OR place LIKE '%lll_lock_wait%' OR
                      place LIKE '%runtime.lock2%' OR place LIKE '%lock_contended%' OR place LIKE '%utex::%ock%'))
SELECT 'lock contention' AS cause,
       'the thread waited for ' || duration(waits.ns) || ' of the ' || duration(l.duration_ns) || ' for locks' ||
       CASE WHEN waits.times > 1 THEN ' (' || waits.times || ' times, longest ' || duration(waits.longest) || ')' ELSE '' END ||
       CASE WHEN waits.holders = 1 THEN '; they were let go by ' || waits.who ELSE '; ' || waits.holders || ' threads let them go' END || ', at ' ||
       waits.place AS evidence
FROM l JOIN waits
WHERE waits.ns * 3 >= l.duration_ns
