-- The thread could have run, but its control group had used up its CPU quota. That the group has a quota is in the record. That it was the
-- quota which kept the thread off is there too where the wait was noticed as it went on. Otherwise: from Linux 6.18 the thread leaves by
-- itself on its way out of the kernel (task_work_run); before, its CPU was given to nobody, though the thread was ready.
SELECT 'cgroup CPU throttling' AS cause,
       'the thread was ready to run for ' || duration(l.duration_ns) || ', but its control group may use ' || duration(q.value * 1000) ||
       ' of CPU time every ' || duration(p.value * 1000) || ' and was throttled ' || t.value || ' times so far' AS evidence
FROM stall l
JOIN stall_attr q ON q.stall_id = l.id AND q.key = 'cpu_quota_us'
JOIN stall_attr p ON p.stall_id = l.id AND p.key = 'cpu_period_us'
JOIN stall_attr t ON t.stall_id = l.id AND t.key = 'throttled' AND t.value > 0
WHERE l.id = ?1 AND l.state = 'runnable'
  AND coalesce((SELECT value > 0 FROM stall_attr WHERE stall_id = l.id AND key = 'throttled_now'),
               NOT EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'next')
               OR EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
                          WHERE k.id = l.kernel_stack_id AND k.depth < 3 AND s.name IN ('task_work_run', 'throttle_cfs_rq_work')))
