-- The thread could have run all the time: the scheduler gave its CPU to others. The record names the one that got it first.
SELECT 'CPU taken by other work' AS cause,
       'the thread was ready to run for ' || duration(l.duration_ns) ||
       coalesce(': ' || (SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'next') || ' got its CPU', '') AS evidence
FROM stall l
WHERE l.id = ?1 AND l.kind = 'offcpu' AND l.state = 'runnable'
