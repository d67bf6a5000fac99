-- The CPU served interrupts: a handler held it (the triggers irq and softirq), or the thread that does what softirqs leave over (a thread of
-- the kernel: others may have its name) had it for half of the wait or more, which runq tells. Of offcpu only who got it first is known, and
-- ksoftirqd often is that for a moment.
SELECT CASE WHEN l.kind = 'irq' THEN 'interrupt load' ELSE 'softirq load' END AS cause,
       CASE l.kind WHEN 'irq' THEN 'an interrupt handler' ELSE 'a softirq' END || ' held the CPU for ' || duration(l.duration_ns) ||
       coalesce(': ' || coalesce((SELECT value FROM stall_attr WHERE stall_id = l.id AND key IN ('handler', 'softirq', 'irq', 'name')
                                  ORDER BY key LIMIT 1), l.waker), '') AS evidence
FROM stall l
WHERE l.id = ?1 AND l.kind IN ('irq', 'softirq')
UNION ALL
SELECT 'softirq load', 'the thread was ready to run for ' || duration(l.duration_ns) || ': ' || n.value || ' had its CPU for ' || duration(h.value) ||
       ', which runs softirqs'
FROM stall l
JOIN stall_attr n ON n.stall_id = l.id AND n.key = 'next' AND n.value LIKE '%"ksoftirqd/%'
JOIN stall_attr h ON h.stall_id = l.id AND h.key = 'held_ns' AND h.value * 2 >= l.duration_ns
WHERE l.id = ?1 AND l.state = 'runnable'
  AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'next_kernel' AND value = 1)
  AND NOT EXISTS (SELECT 1 FROM stall_attr t WHERE t.stall_id = l.id AND t.key = 'throttled' AND t.value > 0 AND NOT EXISTS (
          SELECT 1 FROM stall_attr n WHERE n.stall_id = l.id AND n.key = 'throttled_now' AND n.value = 0))
