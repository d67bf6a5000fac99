-- Nagle against delayed ACK: the sender holds a small segment until the one before it is acknowledged, the receiver holds the
-- acknowledgement back for up to 40 ms. The wait then ends when the delayed-ACK timer has run: the record's chain names it.
SELECT 'delayed ACK against Nagle' AS cause,
       'the wait in ' || coalesce(l.syscall, '?') || ' ended after the timer ' || l.timer ||
       ' ran: small writes wait for an acknowledgement that the peer delays; TCP_NODELAY on the writing socket, or one write instead of two, removes it'
           AS evidence
FROM stall l
WHERE l.id = ?1 AND l.timer = 'tcp_delack_timer'
