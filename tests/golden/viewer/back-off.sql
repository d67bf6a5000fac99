-- Beside trace.sql: waits of 700 us, 4 ms and 24 ms, with 50 us between them, the last one until its own time-out.
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, wake_ns, reason, fired) VALUES
    (2, 'offcpu>20ms', 1, 'offcpu', 20000000, 44000000, 24000000, 20000000, 'sleeping', 'futex', 'its own time-out', 43990000,
     'thread 4312 "forwarder" off-CPU 24.0 ms in futex, woken by its own time-out', 1);
DELETE FROM offcpu;
INSERT INTO offcpu VALUES (1, 1, 15200000, 15900000, 0, NULL), (2, 1, 15950000, 19950000, 0, NULL), (3, 1, 20000000, 44000000, 0, NULL);
