-- Beside trace.sql: the thread was ready to run, and its CPU ran another.
UPDATE offcpu SET preempted = 1;
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, reason, fired) VALUES
    (2, 'offcpu>20ms', 1, 'offcpu', 5000000, 45200000, 40200000, 20000000, 'runnable', 'thread 4312 "forwarder" off-CPU 40.2 ms', 1);
INSERT INTO stall_attr VALUES (2, 'cpu', 0), (2, 'next', 'thread 99 "cc1"');
