-- A stall of a thread without calls: its stack tells, with what the compiler inlined.
INSERT INTO thread (id, process_id, tid, name) VALUES (90, 1, 990, 'alone');
INSERT INTO stack VALUES (90, 0, 4600, 2), (90, 1, 4700, 1);
INSERT INTO stack_line VALUES (90, 0, 0, 'inner', 'a.c', 3), (90, 0, 1, 'middle' || char(27), 'a.c', 7), (90, 0, 2, NULL, 'a.c', 9), (90, 1, 0, NULL, 'a.c', 20);
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason, fired, user_stack_id)
VALUES (90, 'offcpu>1ms', 90, 'offcpu', 1000, 2001000, 2000000, 1000000, 'sleeping', 'read', NULL, 'thread 990 "alone" off-CPU 2.00 ms in read', 0, 90);
