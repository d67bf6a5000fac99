-- A database waits for a lock of its own, which the kernel sees as any other wait: PostgreSQL's backends wait for their latch, in
-- epoll_wait, or for a semaphore. The functions that wait are in its call path: ProcSleep() for the locks of rows, transactions and tables
-- (src/backend/storage/lmgr/proc.c), LWLockAcquire() for those of its own structures (lwlock.c).
WITH RECURSIVE l AS (SELECT wait.*, start_ns + duration_ns / 2 AS mid FROM wait),
     open(id) AS ( -- what was open in its middle, as in 45-lock.sql
         SELECT * FROM (SELECT c.id FROM l JOIN call c ON c.id >= (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns < l.mid
                 ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)
             AND c.id < (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns >= l.mid + 1 ORDER BY k.start_ns, k.id LIMIT 1)
             AND c.thread_id = l.thread_id AND c.start_ns <= l.mid ORDER BY c.start_ns DESC, c.id DESC LIMIT 1)
         UNION SELECT c.parent_id FROM open JOIN call c ON c.id = open.id WHERE c.parent_id IS NOT NULL),
     path(name) AS (
         SELECT s.name FROM l JOIN stack k ON k.id = l.user_stack_id JOIN symbol s ON s.id = k.symbol_id JOIN module m ON m.id = s.module_id WHERE m.name = 'postgres'
         UNION
         SELECT s.name FROM l JOIN open JOIN call c ON c.id = open.id AND c.start_ns + c.duration_ns >= l.mid JOIN symbol s ON s.id = c.symbol_id
         JOIN module m ON m.id = s.module_id WHERE m.name = 'postgres'),
     what(text) AS (SELECT CASE
         WHEN EXISTS (SELECT 1 FROM path WHERE name IN ('XactLockTableWait', 'SpeculativeInsertionWait'))
             THEN 'another transaction to end, which had changed or locked a row first (XactLockTableWait)'
         WHEN EXISTS (SELECT 1 FROM path WHERE name = 'VirtualXactLock') THEN 'another transaction to end (VirtualXactLock)'
         WHEN EXISTS (SELECT 1 FROM path WHERE name IN ('LockRelationOid', 'LockRelation', 'ConditionalLockRelationOid')) THEN 'the lock of a table (LockRelationOid)'
         WHEN EXISTS (SELECT 1 FROM path WHERE name = 'LockTuple') THEN 'the lock of a row (LockTuple)'
         WHEN EXISTS (SELECT 1 FROM path WHERE name = 'ProcSleep') THEN 'a lock (ProcSleep)'
         WHEN EXISTS (SELECT 1 FROM path WHERE name IN ('LWLockAcquire', 'LWLockAcquireOrWait')) THEN 'a lock of its own structures (LWLockAcquire)' END)
SELECT 'database lock' AS cause,
       'PostgreSQL waited ' || l.slept || ' for ' || what.text ||
       CASE WHEN l.end_ns IS NULL THEN '; it still waits' WHEN l.waker LIKE 'thread %' THEN '; ' || l.waker || ' let it go on' ELSE '' END AS evidence
FROM l JOIN what
WHERE what.text IS NOT NULL
