-- Beside trace.sql: a loop that was away for 46 ms, of which nothing else was measured.
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, reason, fired) VALUES
    (2, 'busy>20ms', 1, 'busy', 3000000, 49000000, 46000000, 20000000, 'thread 4312 "forwarder" away from its event loop 46.0 ms', 1);
INSERT INTO stall_attr VALUES (2, 'cpu', 0), (2, 'longest_syscall', 'read'), (2, 'syscall_ns', 3300);
-- Where and how it was recorded: the head of the report.
INSERT OR REPLACE INTO meta VALUES ('wall_offset_ns', 1700000000123456789), ('hostname', 'web1'), ('kernel', '6.1.0'), ('traced', 'user+kernel'),
    ('history_start_ns', 0), ('history_end_ns', 50000000), ('command.4312', 'forwarder: worker' || char(27) || '[1m'), ('exe.4312', '/usr/bin/forwarder'),
    ('build_id.4312', 'abcdef0123456789');
UPDATE module SET build_id = 'fedcba9876543210' WHERE id = 1; -- what stands at that path by now
