-- Beside trace.sql: samples before and behind the wait say pthread_mutex_lock; its own stack, which the trigger took, says otherwise.
UPDATE meta SET value = 'sample' WHERE key = 'source';
UPDATE call SET flags = 32;
UPDATE offcpu SET call_id = NULL;
INSERT INTO symbol (id, module_id, name, address, size) VALUES (13, 2, 'flock', 8600, 50);
INSERT INTO stack VALUES (4, 0, 8610, 13), (4, 1, 4250, 2);
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, reason, fired, user_stack_id) VALUES
    (2, 'offcpu>20ms', 1, 'offcpu', 5000000, 45200000, 40200000, 20000000, 'sleeping', 'flock',
     'thread 4312 "forwarder" off-CPU 40.2 ms in flock', 1, 4),
    (3, 'offcpu>20ms', 1, 'offcpu', 5000000, 45200000, 40200000, 20000000, 'sleeping', 'flock',
     'thread 4312 "forwarder" off-CPU 40.2 ms in flock', 1, NULL);
