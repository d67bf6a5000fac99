-- Names that a terminal must not see as they are, or that take two columns or none.
PRAGMA application_id = 0x73746c74;
INSERT INTO process (id, pid, name) VALUES (1, 1, 'p');
INSERT INTO thread (id, process_id, tid, name) VALUES (1, 1, 1, char(27) || ']0;owned' || char(7) || '漢字'), (2, 1, 2, 'e' || char(769) || 'te');
INSERT INTO module (id, name, path, kernel) VALUES (1, '模块.so', '/lib/模块.so', 0);
INSERT INTO symbol (id, module_id, name, address, size) VALUES
    (1, 1, '関数の名前はとても長い', 1, 1), (2, 1, 'co' || char(776) || 'mbining' || char(8205) || 'x', 2, 1), (3, 1, char(8238) || 'backwards', 3, 1),
    (4, 1, CAST(x'ff00fe' AS TEXT), 4, 1), (5, 1, 'new' || char(10) || 'line' || char(9) || 'tab', 5, 1), (6, 1, '', 6, 1);
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES
    (1, 1, 1, NULL, 0, 0, 1000, 100, 0), (2, 1, 2, 1, 1, 0, 200, 200, 0), (3, 1, 3, 1, 1, 200, 200, 200, 0), (4, 1, 4, 1, 1, 400, 200, 200, 0),
    (5, 1, 5, 1, 1, 600, 200, 200, 0), (6, 1, 6, 1, 1, 800, 100, 100, 0), (7, 2, 1, NULL, 0, 0, 1000, 1000, 0);
