-- A wait for a lock of a file, flock(2)'s or fcntl(2)'s: the kernel's functions in which these are waited for (fs/locks.c). Who let go of
-- the lock, by unlocking it or by closing the file, woke the thread out of locks_wake_up_blocks().
WITH l AS (SELECT wait.*, (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'file' AND looked) AS file FROM wait),
     let_go(waker) AS (SELECT l.waker FROM l WHERE l.waker LIKE 'thread %' AND EXISTS (
                           SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = l.waker_stack_id AND s.name LIKE '%locks_wake_up_blocks%'))
SELECT 'lock contention' AS cause,
       'a lock of the file' || coalesce(' ' || l.file, '') || ', asked for by ' || coalesce(l.syscall, 'a system call') ||
       coalesce('; ' || (SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'lock_holder' AND l.looked) || ' had taken it', '') ||
       CASE WHEN l.end_ns IS NULL THEN '; it is still held: nobody has let go of it'
            ELSE coalesce('; ' || (SELECT waker FROM let_go) || ' let go of it', '; who let go of it is not known') END AS evidence
FROM l
WHERE EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = l.kernel_stack_id
              AND s.name IN ('locks_lock_inode_wait', 'flock_lock_inode_wait', 'posix_lock_inode_wait', 'do_lock_file_wait', 'fcntl_setlk'))
