-- The other end of a connection took its time: the wait ended with data from it, and this side owed it nothing. A wait in read or recv
-- asks for data; in poll, epoll_wait and the like it counts when this side had sent its last data not longer before the wait than that lasted,
-- and the connection was not made to this process (a server that waits for the next request is idle). Of UDP, which tells neither, a socket
-- that is connected to one peer counts.
WITH l AS (SELECT wait.*, (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'peer') AS peer,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'sent_after_ns') AS sent,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'nodelay') AS nodelay,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'accepted') AS accepted,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'retransmits') AS retransmits,
                  (SELECT value FROM stall_attr WHERE stall_id = wait.id AND key = 'peer_process') AS process,
                  EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = wait.id AND key = 'idle') AS idle
           FROM wait WHERE kind <> 'socket')
SELECT 'slow peer' AS cause,
       peer || coalesce(', ' || process || ',', '') || ' answered after ' || duration(duration_ns - coalesce(min(sent, 0), 0)) || CASE WHEN sent IS NULL THEN ''
           WHEN sent <= 0 THEN '; the last data to it left ' || duration(-sent) || ' before the wait' ELSE '' END ||
       CASE WHEN retransmits > 0 THEN ' (the connection has had ' || retransmits || ' retransmissions)' ELSE '' END AS evidence
FROM l
WHERE peer IS NOT NULL AND looked
  AND (CASE WHEN idle THEN coalesce(accepted, 0) = 0 AND peer NOT LIKE '%:0'
                           AND (sent BETWEEN -duration_ns AND 0 OR nodelay IS NULL)
            ELSE coalesce(sent, 0) <= duration_ns / 10 END)
  AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
              WHERE k.id = l.waker_stack_id AND s.name = 'sock_def_readable')
UNION ALL
SELECT 'slow peer', peer || coalesce(', ' || process || ',', '') || ' has sent nothing for ' || slept || ', and the thread still waits for it in ' || syscall
FROM l
WHERE end_ns IS NULL AND peer IS NOT NULL AND looked AND NOT idle AND coalesce(accepted, 0) = 0
  AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = l.kernel_stack_id AND s.name = 'sk_wait_data')
UNION ALL
SELECT 'slow peer', waker || ', at the other end of a local socket, wrote after ' || duration(duration_ns)
FROM l
WHERE peer IS NULL AND NOT idle AND waker LIKE 'thread %'
  AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
              WHERE k.id = l.waker_stack_id AND s.name IN ('unix_stream_sendmsg', 'unix_dgram_sendmsg'))
LIMIT 1
