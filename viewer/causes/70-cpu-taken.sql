-- The thread could have run all the time: the scheduler gave its CPU to others. The record names the one that got it first, and of runq who
-- had it longest, for how long. How long the first one had it is known where its switches were recorded. Without a name nobody is blamed;
-- nor when its control group is throttled now and then, unless the wait was noticed as it went on, and it was not throttled then.
WITH l AS (SELECT s.*, n.value AS who, iif(s.kind = 'runq', (SELECT CAST(value AS INTEGER) FROM stall_attr WHERE stall_id = s.id AND key = 'held_ns'),
                  (SELECT sum(min(i.end_ns, s.start_ns + s.duration_ns) - max(i.start_ns, s.start_ns))
                   FROM slice i JOIN thread t ON t.id = i.thread_id
                   WHERE n.value LIKE 'thread ' || t.tid || ' %' AND i.start_ns < s.start_ns + s.duration_ns AND i.end_ns > s.start_ns)) AS held,
           (SELECT CAST(value AS INTEGER) FROM stall_attr WHERE stall_id = s.id AND key = 'turns') AS turns
           FROM stall s JOIN stall_attr n ON n.stall_id = s.id AND n.key = 'next'
           WHERE s.id = ?1 AND s.kind IN ('offcpu', 'runq') AND s.state = 'runnable')
SELECT 'CPU taken by other work' AS cause,
       'the thread was ready to run for ' || duration(l.duration_ns) || ': ' || CASE WHEN EXISTS (
           SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'next_kernel' AND value = 1) THEN 'the kernel''s ' ELSE '' END ||
       l.who || CASE WHEN l.held IS NULL THEN ' got its CPU'
                     WHEN l.kind = 'runq' THEN ' had its CPU for ' || duration(l.held)
                     ELSE ' got its CPU and had it for ' || duration(l.held) END ||
       CASE WHEN l.held * 2 >= l.duration_ns THEN ''
            WHEN l.turns >= 512 THEN ', the longest of the last ' || l.turns || ' turns of others'
            WHEN l.turns > 1 THEN ', the longest of ' || l.turns || ' turns of others'
            WHEN l.kind = 'offcpu' THEN ' first, who had it ' || iif(l.held IS NULL, 'then', 'otherwise') || ' is not recorded (runq tells, or arm -a)'
            ELSE '' END AS evidence
FROM l
WHERE NOT EXISTS (SELECT 1 FROM stall_attr t WHERE t.stall_id = l.id AND t.key = 'throttled' AND t.value > 0 AND NOT EXISTS (
          SELECT 1 FROM stall_attr n WHERE n.stall_id = l.id AND n.key = 'throttled_now' AND n.value = 0))
