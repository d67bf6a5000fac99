-- A small trace whose every figure is known: a forwarder of two threads, a 40 ms wait for a lock that "writer" held.
PRAGMA application_id = 0x73746c74;
INSERT INTO meta VALUES ('trigger_stall_id', 1), ('source', 'step'), ('origin_perf_ns', 1000000000);
INSERT INTO process (id, pid, name) VALUES (1, 4312, 'forwarder');
INSERT INTO thread (id, process_id, tid, name, start_ns, end_ns) VALUES
    (1, 1, 4312, 'forwarder', 0, 50000000),
    (2, 1, 4313, 'writer', 0, 50000000);
INSERT INTO module (id, name, path, kernel) VALUES
    (1, 'forwarder', '/usr/bin/forwarder', 0),
    (2, 'libc.so.6', '/lib/x86_64-linux-gnu/libc.so.6', 0),
    (3, '[kernel]', '[kernel]', 1);
INSERT INTO symbol (id, module_id, name, address, size) VALUES
    (1, 1, 'main', 4096, 100), (2, 1, 'relay', 4200, 100), (3, 1, 'pump', 4300, 100), (4, 2, 'recv', 8192, 50),
    (5, 2, 'pthread_mutex_lock', 8300, 50), (6, 3, '[syscall]', 0, 0), (7, 1, 'writer_loop', 4400, 100),
    (8, 1, 'hold_lock_for_flush', 4500, 100), (9, 2, 'pthread_mutex_unlock', 8400, 50), (10, 1, char(27) || '[31mred', 4600, 10),
    (11, 3, 'futex_wait_queue', 100, 10), (12, 3, 'do_futex', 120, 10);
-- id, thread, symbol, parent, depth, start, duration, self, flags
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES
    (1, 1, 1, NULL, 0, 0, 50000000, 1000000, 3),
    (2, 1, 2, 1, 1, 500000, 3000000, 1000000, 0),
    (3, 1, 3, 2, 2, 600000, 2000000, 1500000, 0),
    (4, 1, 4, 3, 3, 700000, 500000, 500000, 0),
    (5, 1, 10, 1, 1, 3600000, 200000, 200000, 4),
    (6, 1, 2, 1, 1, 4000000, 45000000, 500000, 0),
    (7, 1, 5, 6, 2, 4500000, 44000000, 100000, 0),
    (8, 1, 6, 7, 3, 5000000, 41000000, 1000000, 0),
    (9, 2, 7, NULL, 0, 0, 50000000, 5000000, 3),
    (10, 2, 8, 9, 1, 3000000, 42500000, 42400000, 0),
    (11, 2, 9, 10, 2, 45000000, 400000, 400000, 16);
INSERT INTO slice VALUES (1, 1, 0, 0, 5000000), (2, 1, 1, 45200000, 50000000), (3, 2, 1, 0, 50000000);
INSERT INTO offcpu VALUES (1, 1, 5000000, 45200000, 0, 8);
INSERT INTO stack VALUES (1, 0, 105, 11), (1, 1, 125, 12), (2, 0, 8310, 5), (2, 1, 4250, 2), (2, 2, 4100, 1),
    (3, 0, 8410, 9), (3, 1, 4420, 7);
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason, fired,
                   waker_thread_id, wake_ns, kernel_stack_id, user_stack_id) VALUES
    (1, 'offcpu>20ms', 1, 'offcpu', 5000000, 45200000, 40200000, 20000000, 'sleeping', 'futex', 'thread 4313 "writer"',
     'thread 4312 "forwarder" off-CPU 40.2 ms in futex, woken by thread 4313 "writer"', 1, 2, 45100000, 1, 2);
INSERT INTO stall_attr VALUES (1, 'waker_user_stack_id', 3);
INSERT INTO gap VALUES (1, 1, NULL, 48000000, 49000000, 'overflow', 'the CPU lost packets', 128);
