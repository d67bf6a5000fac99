-- The thread asked for its data to be on disk and waited for it.
SELECT 'disk write (' || l.syscall || ')' AS cause,
       'the thread slept ' || duration(l.duration_ns) || ' in ' || l.syscall || coalesce(': kernel function ' || (
           SELECT s.name FROM stack k JOIN symbol s ON s.id = k.symbol_id
           WHERE k.id = l.kernel_stack_id AND (s.name LIKE '%sync%' OR s.name LIKE '%writeback%' OR s.name LIKE '%wait_on%')
           ORDER BY k.depth LIMIT 1), '') AS evidence
FROM stall l
WHERE l.id = ?1 AND l.syscall IN ('fsync', 'fdatasync', 'sync', 'syncfs', 'sync_file_range', 'msync')
