-- A send that sleeps: the socket's buffer is full because the peer does not read (or the network does not carry).
SELECT 'slow downstream' AS cause,
       l.syscall || ' waited for room in the socket''s send buffer (' || s.name || '): the peer reads more slowly than this thread writes'
           AS evidence
FROM stall l
JOIN stack k ON k.id = l.kernel_stack_id
JOIN symbol s ON s.id = k.symbol_id
WHERE l.id = ?1 AND l.syscall IN ('write', 'writev', 'sendto', 'sendmsg', 'sendmmsg', 'sendfile', 'splice')
  AND s.name IN ('sk_stream_wait_memory', 'sock_alloc_send_pskb', 'unix_wait_for_peer')
ORDER BY k.depth
LIMIT 1
