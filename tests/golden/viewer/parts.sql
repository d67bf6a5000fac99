-- Stalls whose parts are known to the nanosecond. Thread 1 is the one that stalls, 2 a hog on its CPU, 3 an idle thread.
PRAGMA application_id = 0x73746c74;
INSERT INTO meta VALUES ('trigger_stall_id', 1), ('source', 'sample'), ('samples', 9), ('sample_period_ns', 1000000);
INSERT INTO process (id, pid, name) VALUES (1, 100, 'loop');
INSERT INTO thread (id, process_id, tid, name) VALUES (1, 1, 100, 'loop'), (2, 1, 101, 'hog'), (3, 1, 0, 'swapper/1');
INSERT INTO module (id, name, path, kernel) VALUES (1, 'loop', '/bin/loop', 0), (2, '[kernel]', '[kernel]', 1);
INSERT INTO symbol (id, module_id, name, address, size) VALUES (1, 1, 'main', 1, 1), (2, 1, 'compute', 2, 1), (3, 1, 'store', 3, 1), (4, 2, 'futex_wait', 4, 1);
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES
    (1, 1, 1, NULL, 0, 0, 100000000, 0, 35),
    (2, 1, 2, 1, 1, 1000000, 19000000, 19000000, 32),
    (3, 1, 3, 1, 1, 20000000, 60000000, 0, 32),
    (4, 1, 4, 3, 2, 20000000, 35000001, 0, 32);
INSERT INTO slice (thread_id, cpu, start_ns, end_ns) VALUES (1, 0, 0, 20000000), (2, 0, 10, 0),
    (1, 1, 55000001, 60000000), (1, 1, 63000000, 70000000), (1, 1, 72000000, 75000000),
    (2, 1, 52000000, 55000001), (3, 1, 60000000, 63000000), (2, 1, 70000000, 72000000);
DELETE FROM slice WHERE end_ns = 0;
-- A wait with a mark of its switch and of its wake-up; one whose wake-up nobody saw; one in which the thread could have run.
INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted, call_id) VALUES (1, 20000000, 55000001, 0, 4), (1, 60000000, 63000000, 0, 3),
    (1, 70000000, 72000000, 1, NULL);
INSERT INTO mark (thread_id, cpu, time_ns, name, detail) VALUES
    (1, 0, 19999000, 'offcpu', 'sleeping in futex'), (1, 1, 52000000, 'woken', 'by thread 101 "hog" in futex'),
    (1, 1, 69999000, 'offcpu', 'preempted, CPU to thread 101 "hog"');
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason, fired, wake_ns) VALUES
    (1, 'busy>20ms', 1, 'busy', 2000000, 80000000, 78000000, 20000000, NULL, NULL, NULL, 'thread 100 "loop" away from its event loop 78.0 ms', 1, NULL),
    (2, 'offcpu>1ms', 1, 'offcpu', 76000000, 79000000, 3000000, 1000000, 'disk sleep', 'fsync', 'softirq BLOCK', 'x', 0, 78500000),
    (3, 'irq>1ms', 1, 'irq', 2000000, 5000000, 3000000, 1000000, NULL, NULL, NULL, 'x', 0, NULL),
    (4, 'call:f', 1, 'call', 2000000, 2000000, 0, 0, NULL, NULL, NULL, 'x', 0, NULL),
    (5, 'syscall>1ms', 1, 'syscall', 30000000, 60000000, 30000000, 1000000, NULL, 'futex', NULL, 'x', 0, NULL);
INSERT INTO stall_attr VALUES (1, 'samples', 18), (3, 'samples', 3), (5, 'samples', 0);
