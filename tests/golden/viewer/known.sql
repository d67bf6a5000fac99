-- A trace whose every answer is known. "app" (main, helper) and "noise" on two CPUs, 0 to 12 ms; all times obey docs/schema.md.
PRAGMA application_id = 0x73746c74;
INSERT INTO meta VALUES ('trigger_stall_id', 1), ('source', 'intel-pt'), ('origin_perf_ns', 5000000000);
INSERT INTO process (id, pid, name) VALUES (1, 100, 'app'), (2, 200, 'noise');
INSERT INTO thread (id, process_id, tid, name, start_ns, end_ns) VALUES
    (1, 1, 100, 'main', 0, NULL), (2, 1, 101, 'helper', NULL, NULL), (3, 2, 200, 'noise;</script>', NULL, NULL);
INSERT INTO module (id, name, path, kernel) VALUES
    (1, 'app', '/usr/bin/app', 0), (2, 'libc.so.6', '/lib/libc.so.6', 0), (3, '[kernel]', '[kernel]', 1);
INSERT INTO symbol (id, module_id, name, address, size) VALUES
    (1, 1, 'main', 4096, 100), (2, 1, 'work', 4200, 100), (3, 1, 'leaf', 4300, 100), (4, 2, 'read', 8192, 50),
    (5, 3, '[syscall]', 0, 0), (6, 1, 'helper_main', 4400, 50), (7, 1, 'a<b;c>::fib', 4500, 50), (8, 3, '[interrupt]', 0, 0),
    (9, 1, '</script><b>&"', 4600, 50), (10, 3, 'futex_wait', 100, 10), (11, 3, 'wake_up_q', 200, 10);
-- main 0..10 ms. work k (0..9) begins at k ms and lasts (k + 1) * 10 us; its leaf begins with it and lasts half of that.
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES (1, 1, 1, NULL, 0, 0, 10000000, 6450000, 3);
WITH RECURSIVE k(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n < 9)
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) SELECT 2 + 2 * n, 1, 2, 1, 1, n * 1000000, (n + 1) * 10000, (n + 1) * 5000, 0 FROM k
    UNION ALL SELECT 3 + 2 * n, 1, 3, 2 + 2 * n, 2, n * 1000000, (n + 1) * 5000, (n + 1) * 5000, 16 FROM k;
-- Three reads behind work 3, 5 and 7: 500 us (400 us off the CPU), 1 ms... kept in their own millisecond, and 1.5 ms in one.
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES
    (100, 1, 4, 1, 1, 3200000, 500000, 50000, 0), (101, 1, 5, 100, 2, 3210000, 450000, 50000, 0),
    (102, 1, 4, 1, 1, 5100000, 500000, 100000, 0), (103, 1, 5, 102, 2, 5150000, 400000, 400000, 0),
    (104, 1, 4, 1, 1, 8100000, 800000, 100000, 0), (105, 1, 5, 104, 2, 8150000, 700000, 100000, 0),
    -- main's last millisecond: fib(3) by recursion, and a function with a name from a bad dream.
    (106, 1, 7, 1, 1, 9200000, 700000, 100000, 0), (107, 1, 7, 106, 2, 9200000, 400000, 100000, 256),
    (108, 1, 7, 107, 3, 9300000, 300000, 300000, 256), (109, 1, 7, 106, 2, 9600000, 200000, 200000, 256),
    (110, 1, 9, 1, 1, 9910000, 0, 0, 4),
    -- main waits for its turn from 4.5 to 5 ms: preempted, in main itself.
    (200, 2, 6, NULL, 0, 0, 12000000, 9000000, 3), (201, 2, 2, 200, 1, 1000000, 3000000, 3000000, 0);
INSERT INTO slice VALUES
    (1, 1, 0, 0, 3250000), (2, 1, 0, 3650000, 4500000), (3, 1, 1, 5000000, 8200000), (4, 1, 0, 8800000, 10000000),
    (5, 2, 1, 0, 4900000), (6, 2, 1, 8200000, 12000000), (7, 3, 0, 3250000, 3650000), (8, 3, 0, 4500000, 8800000);
INSERT INTO offcpu VALUES
    (1, 1, 3250000, 3650000, 0, 101), (2, 1, 4500000, 5000000, 1, 1), (3, 1, 8200000, 8800000, 0, 105), (4, 3, 3650000, 4500000, 0, NULL);
INSERT INTO stack VALUES (1, 0, 105, 10), (2, 0, 205, 11);
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason, fired,
                   waker_thread_id, wake_ns, timer, kernel_stack_id, user_stack_id, waker_stack_id) VALUES
    (1, 'offcpu>300us', 1, 'offcpu', 3250000, 3650000, 400000, 300000, 'sleeping', 'read', 'thread 101 "helper"',
     'thread 100 "main" off-CPU 400 us in read', 1, 2, 3640000, NULL, 1, NULL, 2),
    (2, 'offcpu>300us', 1, 'offcpu', 8200000, 8800000, 600000, 300000, 'disk sleep', 'read', 'softirq BLOCK',
     'thread 100 "main" off-CPU 600 us in read', 0, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO stall_attr VALUES (1, 'bytes', 4096), (2, 'bytes', 512), (1, 'next', 'noise 200');
INSERT INTO mark VALUES (1, 1, NULL, 100000, 'exec', 'app'), (2, NULL, 1, 6000000, 'throttled', NULL);
INSERT INTO gap VALUES (1, 2, NULL, 10000000, 10500000, 'overflow', 'the CPU lost packets', 128), (2, NULL, NULL, 11000000, 11000000, 'lost', '3 records', NULL);
-- Where main, read and the nightmare begin in the source; what ran in main, in its first read and in the system call of that.
INSERT INTO source VALUES (1, '/src/app/main.c', 42), (4, '../sysdeps/unix/read.c', 26), (9, 'bad' || char(27) || '[31m.c', 7);
UPDATE call SET instructions = 12345678, cycles = 8230452 WHERE id = 1;
UPDATE call SET instructions = 900, cycles = 1000 WHERE id = 100;
UPDATE call SET instructions = 17, cycles = 0 WHERE id = 101;
