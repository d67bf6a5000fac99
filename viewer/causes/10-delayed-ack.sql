-- Nagle against delayed ACK: the sender holds a small segment until the one before it is acknowledged, the receiver holds the
-- acknowledgement back for up to 40 ms. The wait then ends when the delayed-ACK timer has run: the record's chain names it.
-- A wait for room in a send buffer (40-slow-downstream.sql) ends so too, by an acknowledgement that happened to be a delayed
-- one: what it waited for is the reader.
SELECT 'delayed ACK against Nagle' AS cause,
       'the wait in ' || coalesce(l.syscall, '?') || ' ended after the timer ' || l.timer ||
       ' ran: small writes wait for an acknowledgement that the peer delays; TCP_NODELAY on the writing socket, or one write instead of two, removes it' ||
       coalesce('; the thread''s last packets were sent or held back in tcp_write_xmit ' || duration(l.start_ns - (
           SELECT max(c.start_ns) FROM call c JOIN symbol s ON s.id = c.symbol_id
           WHERE c.thread_id = l.thread_id AND s.name = 'tcp_write_xmit' AND c.start_ns < l.start_ns)) || ' before', '')
           AS evidence
FROM stall l
WHERE l.id = ?1 AND l.timer = 'tcp_delack_timer'
  AND coalesce(l.syscall, '') NOT IN ('write', 'writev', 'sendto', 'sendmsg', 'sendmmsg', 'sendfile')
  AND NOT EXISTS (
      SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
      WHERE k.id = l.kernel_stack_id AND s.name = 'sk_stream_wait_memory')
