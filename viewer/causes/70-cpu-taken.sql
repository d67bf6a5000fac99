-- The thread could have run all the time: the scheduler gave its CPU to others. The record names the one that got it first; how long that
-- one had it is known where its switches were recorded. Without a name nobody is blamed;
-- nor when its control group is throttled now and then, unless the wait was noticed as it went on, and it was not throttled then.
SELECT 'CPU taken by other work' AS cause,
       'the thread was ready to run for ' || duration(l.duration_ns) || ': ' || CASE WHEN EXISTS (
           SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'next_kernel' AND value = 1) THEN 'the kernel''s ' ELSE '' END ||
       n.value || ' got its CPU' ||
       coalesce(' and had it for ' || duration((
           SELECT sum(min(i.end_ns, l.start_ns + l.duration_ns) - max(i.start_ns, l.start_ns))
           FROM slice i JOIN thread t ON t.id = i.thread_id
           WHERE n.value LIKE 'thread ' || t.tid || ' %' AND i.start_ns < l.start_ns + l.duration_ns AND i.end_ns > l.start_ns)), '')
           AS evidence
FROM stall l
JOIN stall_attr n ON n.stall_id = l.id AND n.key = 'next'
WHERE l.id = ?1 AND l.kind IN ('offcpu', 'runq') AND l.state = 'runnable'
  AND NOT EXISTS (SELECT 1 FROM stall_attr t WHERE t.stall_id = l.id AND t.key = 'throttled' AND t.value > 0 AND NOT EXISTS (
          SELECT 1 FROM stall_attr n WHERE n.stall_id = l.id AND n.key = 'throttled_now' AND n.value = 0))
