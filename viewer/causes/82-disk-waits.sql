-- Waits for the disk that add up, in system calls that write it out, or that slept uninterruptibly in reading or writing a file.
WITH l AS (SELECT * FROM stall WHERE id = ?1),
     waits AS (SELECT syscall, syscall IN ('fsync', 'fdatasync', 'sync', 'syncfs', 'sync_file_range', 'msync', 'write', 'writev', 'pwrite64',
                                           'pwritev', 'pwritev2', 'fallocate', 'ftruncate') AS writes,
                      sum(end_ns - start_ns) AS ns, count(*) AS times, max(end_ns - start_ns) AS longest
               FROM part
               WHERE what = 'waiting'
                 AND (syscall IN ('fsync', 'fdatasync', 'sync', 'syncfs', 'sync_file_range', 'msync')
                      OR (state = 'disk sleep' AND syscall IN ('read', 'readv', 'pread64', 'preadv', 'preadv2', 'write', 'writev', 'pwrite64', 'pwritev',
                                                               'pwritev2', 'fallocate', 'ftruncate', 'open', 'openat', 'getdents64', 'newfstatat')))
               GROUP BY syscall ORDER BY ns DESC LIMIT 1)
SELECT CASE WHEN waits.writes THEN 'disk write (' || waits.syscall || ')' ELSE 'disk read' END AS cause,
       'the thread waited for ' || duration(waits.ns) || ' of the ' || duration(l.duration_ns) || ' in ' || waits.syscall ||
       CASE WHEN waits.times > 1 THEN ', in ' || waits.times || ' waits of at most ' || duration(waits.longest) ELSE '' END ||
       coalesce(' of ' || (SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'file'), '') AS evidence
FROM l JOIN waits
WHERE waits.ns * 3 >= l.duration_ns
