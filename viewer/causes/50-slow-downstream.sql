-- A send that sleeps: the socket's buffer is full because the peer does not read (or the network does not carry). It waits where its own
-- stack tells, and is woken by the function that tells writers of room; the record of a thread that came back unseen has the latter only.
SELECT 'slow downstream' AS cause,
       l.syscall || ' waited for room in the socket''s send buffer (' || s.name || '): the peer reads more slowly than this thread writes'
           AS evidence
FROM wait l
JOIN stack k ON k.id IN (l.kernel_stack_id, l.waker_stack_id)
JOIN symbol s ON s.id = k.symbol_id
WHERE l.syscall IN ('write', 'writev', 'sendto', 'sendmsg', 'sendmmsg', 'sendfile', 'splice')
  AND (k.id = l.kernel_stack_id AND s.name IN ('sk_stream_wait_memory', 'sock_alloc_send_pskb', 'unix_wait_for_peer')
       OR k.id = l.waker_stack_id AND s.name IN ('sk_stream_write_space', 'sock_def_write_space', 'unix_write_space'))
ORDER BY k.id <> l.kernel_stack_id, k.depth
LIMIT 1
