-- Beside trace.sql: three waits of one length, and the last one a time-out: what the thread did before tells nothing of it.
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, wake_ns, reason, fired) VALUES
    (2, 'offcpu>20ms', 1, 'offcpu', 20000000, 44000000, 24000000, 20000000, 'sleeping', 'futex', 'its own time-out', 43990000,
     'thread 4312 "forwarder" off-CPU 24.0 ms in futex, woken by its own time-out', 1);
DELETE FROM offcpu;
INSERT INTO offcpu VALUES (1, 1, 12000000, 15900000, 0, NULL), (2, 1, 15950000, 19950000, 0, NULL), (3, 1, 20000000, 44000000, 0, NULL);
