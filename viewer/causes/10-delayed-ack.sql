-- Nagle against delayed ACK: the sender holds a small segment until the one before it is acknowledged, the receiver holds the
-- acknowledgement back for up to 40 ms. Two kinds of evidence. The sender waits for an answer: its socket sent its last data in the
-- midst of the wait, when the thread could not write; TCP_NODELAY is not set, and nothing was retransmitted. The receiver waits: the
-- wait ended when its own delayed-ACK timer had run, which let the sender go on.
-- A wait for room in a send buffer (50-slow-downstream.sql) may end after that timer too: what it waited for is the reader.
WITH l AS (SELECT *, (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'sent_after_ns') AS sent,
                  (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'nodelay') AS nodelay,
                  (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'retransmits') AS retransmits,
                  (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'peer') AS peer
           FROM stall WHERE id = ?1)
SELECT 'delayed ACK against Nagle' AS cause,
       'the socket to ' || peer || ' sent its last data ' || duration(sent) || ' into the wait in ' || coalesce(syscall, '?') ||
       ': Nagle''s algorithm (tcp_nagle_test) held the small write until the peer''s delayed acknowledgement (tcp_delack_timer) came' ||
       coalesce(', ' || (SELECT a.value FROM stall s JOIN stall_attr a ON a.stall_id = s.id AND a.key = 'bytes'
                         WHERE s.kind = 'socket' AND s.thread_id IS l.thread_id AND s.start_ns < l.start_ns + l.duration_ns AND
                               s.start_ns + s.duration_ns > l.start_ns ORDER BY s.start_ns LIMIT 1) || ' bytes lay unsent', '') ||
       coalesce('; written by ' || (
           SELECT group_concat(name || '()', ' and ') FROM (
               SELECT name FROM (
                   SELECT p.name, c.start_ns FROM call c JOIN symbol s ON s.id = c.symbol_id JOIN call o ON o.id = c.parent_id
                   JOIN symbol p ON p.id = o.symbol_id
                   WHERE c.id >= (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns < l.start_ns - 50000000
                             ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)
                     AND c.id < (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns >= l.start_ns + 1
                             ORDER BY k.start_ns, k.id LIMIT 1)
                     AND c.thread_id = l.thread_id AND c.start_ns BETWEEN l.start_ns - 50000000 AND l.start_ns
                     AND s.name IN ('write', '__write', '__libc_write', '__GI___libc_write', 'writev', '__writev', 'send', '__send',
                                    '__libc_send', 'sendto', '__sendto', '__libc_sendto', 'sendmsg', '__sendmsg', '__libc_sendmsg')
                   ORDER BY c.start_ns DESC LIMIT 2) ORDER BY start_ns)), '') ||
       '; setsockopt(TCP_NODELAY) is missing on it: with it, or with one write instead of two, the wait is gone' AS evidence
FROM l
WHERE sent BETWEEN 5000000 AND duration_ns AND nodelay = 0 AND retransmits = 0
  AND EXISTS (SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
              WHERE k.id = l.waker_stack_id AND s.name = 'sock_def_readable')
UNION ALL
SELECT 'delayed ACK against Nagle',
       'the wait in ' || coalesce((SELECT wait.syscall FROM wait), '?') || ' ended after the timer ' || timer ||
       ' ran: the peer''s small write was held by Nagle''s algorithm (tcp_nagle_test) until this side''s delayed acknowledgement' ||
       ' (tcp_delack_timer); setsockopt(TCP_NODELAY) is missing on the writing socket: with it, or with one write instead of two, the wait is gone' ||
       coalesce('; the thread''s last packets were sent or held back in tcp_write_xmit ' || duration(start_ns - (
           SELECT max(c.start_ns) FROM call c JOIN symbol s ON s.id = c.symbol_id
           WHERE c.id >= (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns < -9223372036854775807
                     ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)
             AND c.id < (SELECT k.id FROM call_time k WHERE k.thread_id = l.thread_id AND k.start_ns >= l.start_ns
                     ORDER BY k.start_ns, k.id LIMIT 1)
             AND c.thread_id = l.thread_id AND s.name = 'tcp_write_xmit' AND c.start_ns < l.start_ns)) || ' before', '')
FROM l
WHERE kind <> 'socket' AND EXISTS (SELECT 1 FROM wait WHERE wait.timer = 'tcp_delack_timer')
  AND coalesce(syscall, '') NOT IN ('write', 'writev', 'sendto', 'sendmsg', 'sendmmsg', 'sendfile')
  AND NOT EXISTS (
      SELECT 1 FROM stack k JOIN symbol s ON s.id = k.symbol_id
      WHERE k.id = l.kernel_stack_id AND s.name = 'sk_stream_wait_memory')
UNION ALL
SELECT 'delayed ACK against Nagle',
       coalesce((SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'bytes'), 'some') || ' bytes to ' || coalesce(peer, 'the peer') ||
       ' lay unsent for ' || duration(duration_ns) ||
       ': Nagle''s algorithm (tcp_nagle_test) held the small write until the peer''s delayed acknowledgement (tcp_delack_timer) came' ||
       '; setsockopt(TCP_NODELAY) is missing on the socket: with it, or with one write instead of two, the wait is gone'
FROM l
WHERE kind = 'socket' AND nodelay = 0 AND duration_ns >= 5000000
  AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'held_by' AND lower(value) = 'nagle')
LIMIT 1
