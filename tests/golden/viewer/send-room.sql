-- Beside trace.sql: a send waited for room in its buffer; the thread came back unseen, so that only the stack of its wake-up is there.
INSERT INTO symbol (id, module_id, name, address, size) VALUES (20, 3, 'sk_stream_write_space', 200, 10);
INSERT INTO stack VALUES (9, 0, 205, 20);
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason, fired,
                   waker_stack_id) VALUES
    (2, 'offcpu>20ms', 1, 'offcpu', 5000000, 45200000, 40200000, 20000000, 'sleeping', 'sendto', 'softirq NET_RX',
     'thread 4312 "forwarder" off-CPU 40.2 ms in sendto, woken by softirq NET_RX', 1, 9);
