-- The write that waits is one of a log: by the file's name, because it is the standard error, or because a function that logs made it.
-- Where it waits (the disk, a pipe whose reader is slow) the kernel stack tells.
WITH RECURSIVE l AS (SELECT *, start_ns + duration_ns / 2 AS mid FROM wait),
     open(id) AS ( -- what was open in its middle: the last call that began before it, and the callers of that
         SELECT * FROM (SELECT c.id FROM l JOIN call c ON c.id >= (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns < l.mid
                 ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)
             AND c.id < (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns >= l.mid + 1 ORDER BY k.start_ns, k.id LIMIT 1)
             AND c.thread_id = l.thread_id AND c.start_ns <= l.mid ORDER BY c.start_ns DESC, c.id DESC LIMIT 1)
         UNION SELECT c.parent_id FROM open JOIN call c ON c.id = open.id WHERE c.parent_id IS NOT NULL),
     file(name) AS (SELECT a.value FROM l JOIN stall_attr a ON a.stall_id = l.id AND a.key = 'file' WHERE l.looked),
     logger(name) AS (
         SELECT s.name FROM l JOIN stack k ON k.id = l.user_stack_id JOIN symbol s ON s.id = k.symbol_id
         UNION ALL
         SELECT s.name FROM l JOIN open JOIN call c ON c.id = open.id AND c.start_ns + c.duration_ns >= l.mid
             JOIN symbol s ON s.id = c.symbol_id),
     found(what) AS (
         SELECT 'the log file ' || name FROM file
         WHERE name LIKE '%.log' OR name LIKE '%.log (deleted)' OR name GLOB '*.log.[0-9]*' OR name LIKE '/var/log/%' OR name = '/dev/log'
         UNION ALL
         SELECT 'the standard error' || coalesce(' (' || (SELECT name FROM file) || ')', '') FROM l JOIN stall_attr a ON a.stall_id = l.id AND a.key = 'arg0'
         WHERE l.has_args AND a.value = 2
         UNION ALL
         SELECT 'a log, by ' || name || '()' FROM logger
         WHERE name IN ('syslog', '__syslog', 'vsyslog', '__vsyslog_internal', '__syslog_chk', '__vsyslog_chk', 'sd_journal_send',
                        'sd_journal_sendv', 'log_line', 'log_message', 'log_printf', 'log_write', 'g_log', 'g_logv', 'g_log_structured')
            OR name LIKE 'spdlog::%' OR name LIKE 'google::LogMessage::%' OR name LIKE 'log4cxx::%' OR name LIKE 'log4cplus::%')
SELECT 'log write' AS cause,
       'the thread slept ' || l.slept || ' in ' || l.syscall || ' to ' || f.what || coalesce(': ' || (
           SELECT CASE WHEN s.name LIKE '%pipe_write%' THEN 'a pipe whose reader is slow'
                       WHEN s.name LIKE 'unix_%' OR s.name LIKE 'sock_alloc_send%' THEN 'a socket whose reader is slow'
                       WHEN s.name LIKE '%tty%' THEN 'a terminal that is slow'
                       ELSE 'the disk' END || ' (' || s.name || ')'
           FROM stack k JOIN symbol s ON s.id = k.symbol_id
           WHERE k.id = l.kernel_stack_id
             AND (s.name LIKE '%pipe_write%' OR s.name LIKE 'unix_%wait%' OR s.name LIKE 'sock_alloc_send%' OR s.name LIKE '%tty_write%'
                  OR s.name LIKE '%writeback%' OR s.name LIKE '%sync%' OR s.name LIKE 'submit_bio%' OR s.name LIKE 'balance_dirty%'
                  OR s.name LIKE '%folio_wait%')
           ORDER BY k.depth LIMIT 1), '') AS evidence
FROM l JOIN found f
WHERE l.syscall IN ('write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'sendto', 'sendmsg', 'fsync', 'fdatasync')
LIMIT 1
