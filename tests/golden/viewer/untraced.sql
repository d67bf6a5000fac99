-- Beside trace.sql: the thread came back by a switch that the kernel did not trace; who woke it was not traced either.
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, reason, fired) VALUES
    (2, 'offcpu>20ms', 1, 'offcpu', 5000000, 45200000, 40200000, 20000000, 'sleeping', 'recvfrom',
     'thread 4312 "forwarder" off-CPU 40.2 ms in recvfrom, woken by what this kernel did not trace', 1);
INSERT INTO stall_attr VALUES (2, 'untraced', 1), (2, 'user_stack_late', 1);
