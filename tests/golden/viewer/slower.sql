-- What makes another trace of known.sql: the helper's work takes 1 ms more; work 9 reads by itself (a path that was not there);
-- main logs a line, which reads too; the function with the bad name is gone.
UPDATE call SET duration_ns = 4000000, self_ns = 4000000 WHERE id = 201;
UPDATE call SET self_ns = self_ns - 1000000 WHERE id = 200;
INSERT INTO symbol VALUES (20, 1, 'log_line', 5000, 50);
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES
    (300, 1, 20, 1, 1, 9915000, 60000, 10000, 0), (301, 1, 4, 300, 2, 9920000, 50000, 50000, 0),
    (302, 1, 4, 20, 2, 9060000, 30000, 30000, 0);
UPDATE call SET self_ns = self_ns - 30000 WHERE id = 20;
UPDATE call SET self_ns = self_ns - 60000 WHERE id = 1;
DELETE FROM call WHERE id = 110;
