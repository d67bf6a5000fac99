-- A wait at a pipe: for data that its writer had not written yet, or for room that its reader had not made. The kernel's functions tell
-- (fs/pipe.c), and so does what the thread that ended the wait was doing.
WITH l AS (SELECT wait.*, (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'file' AND looked) AS file
           FROM wait WHERE coalesce(state, '') = 'sleeping'),
     waits(way) AS (SELECT CASE WHEN s.name IN ('pipe_read', 'anon_pipe_read', 'fifo_pipe_read') THEN 'read' ELSE 'write' END
                    FROM l JOIN stack k ON k.id = l.kernel_stack_id JOIN symbol s ON s.id = k.symbol_id
                    WHERE s.name IN ('pipe_read', 'anon_pipe_read', 'fifo_pipe_read', 'pipe_write', 'anon_pipe_write', 'fifo_pipe_write') AND k.depth < 4 LIMIT 1),
     other(who) AS (SELECT l.waker FROM l JOIN waits WHERE l.waker LIKE 'thread %' AND EXISTS (
                        SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = l.waker_stack_id AND s.name LIKE
                        CASE waits.way WHEN 'read' THEN '%pipe_write' ELSE '%pipe_read' END))
SELECT CASE waits.way WHEN 'read' THEN 'slow writer of a pipe' ELSE 'slow reader of a pipe' END AS cause,
       CASE waits.way WHEN 'read' THEN 'nothing came through ' ELSE 'there was no room in ' END || coalesce(l.file, 'the pipe') || ' for ' || l.slept ||
       CASE WHEN l.end_ns IS NULL THEN ', and still it waits'
            ELSE coalesce('; then ' || (SELECT who FROM other) || CASE waits.way WHEN 'read' THEN ' wrote' ELSE ' read' END, '') END AS evidence
FROM l JOIN waits
