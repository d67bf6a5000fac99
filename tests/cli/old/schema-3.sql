PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;
INSERT INTO meta VALUES('origin_perf_ns',1000000000);
INSERT INTO meta VALUES('source','step');
INSERT INTO meta VALUES('trigger_stall_id',1);
CREATE TABLE process (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    name TEXT NOT NULL,
    parent_pid INTEGER,
    start_ns INTEGER,
    end_ns INTEGER
);
INSERT INTO process VALUES(1,4312,'forwarder',NULL,NULL,NULL);
CREATE TABLE thread (
    id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process (id),
    tid INTEGER NOT NULL,
    name TEXT NOT NULL,
    start_ns INTEGER,
    end_ns INTEGER
);
INSERT INTO thread VALUES(1,1,4312,'forwarder',0,50000000);
INSERT INTO thread VALUES(2,1,4313,'writer',0,50000000);
CREATE TABLE thread_name (
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    start_ns INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (thread_id, start_ns)
) WITHOUT ROWID;
CREATE TABLE module (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    build_id TEXT,
    kernel INTEGER NOT NULL
);
INSERT INTO module VALUES(1,'forwarder','/usr/bin/forwarder',NULL,0);
INSERT INTO module VALUES(2,'libc.so.6','/lib/x86_64-linux-gnu/libc.so.6',NULL,0);
INSERT INTO module VALUES(3,'[kernel]','[kernel]',NULL,1);
CREATE TABLE symbol (
    id INTEGER PRIMARY KEY,
    module_id INTEGER NOT NULL REFERENCES module (id),
    name TEXT NOT NULL,
    address INTEGER NOT NULL,
    size INTEGER NOT NULL
);
INSERT INTO symbol VALUES(1,1,'main',4096,100);
INSERT INTO symbol VALUES(2,1,'relay',4200,100);
INSERT INTO symbol VALUES(3,1,'pump',4300,100);
INSERT INTO symbol VALUES(4,2,'recv',8192,50);
INSERT INTO symbol VALUES(5,2,'pthread_mutex_lock',8300,50);
INSERT INTO symbol VALUES(6,3,'[syscall]',0,0);
INSERT INTO symbol VALUES(7,1,'writer_loop',4400,100);
INSERT INTO symbol VALUES(8,1,'hold_lock_for_flush',4500,100);
INSERT INTO symbol VALUES(9,2,'pthread_mutex_unlock',8400,50);
INSERT INTO symbol VALUES(10,1,'[31mred',4600,10);
INSERT INTO symbol VALUES(11,3,'futex_wait_queue',100,10);
INSERT INTO symbol VALUES(12,3,'do_futex',120,10);
CREATE TABLE source (
    symbol_id INTEGER PRIMARY KEY REFERENCES symbol (id),
    file TEXT NOT NULL,
    line INTEGER NOT NULL
);
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    symbol_id INTEGER NOT NULL REFERENCES symbol (id),
    parent_id INTEGER REFERENCES call (id),
    depth INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    self_ns INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    instructions INTEGER,
    cycles INTEGER
);
INSERT INTO call VALUES(1,1,1,NULL,0,0,50000000,1000000,3,NULL,NULL);
INSERT INTO call VALUES(2,1,2,1,1,500000,3000000,1000000,0,NULL,NULL);
INSERT INTO call VALUES(3,1,3,2,2,600000,2000000,1500000,0,NULL,NULL);
INSERT INTO call VALUES(4,1,4,3,3,700000,500000,500000,0,NULL,NULL);
INSERT INTO call VALUES(5,1,10,1,1,3600000,200000,200000,4,NULL,NULL);
INSERT INTO call VALUES(6,1,2,1,1,4000000,45000000,500000,0,NULL,NULL);
INSERT INTO call VALUES(7,1,5,6,2,4500000,44000000,100000,0,NULL,NULL);
INSERT INTO call VALUES(8,1,6,7,3,5000000,41000000,1000000,0,NULL,NULL);
INSERT INTO call VALUES(9,2,7,NULL,0,0,50000000,5000000,3,NULL,NULL);
INSERT INTO call VALUES(10,2,8,9,1,3000000,42500000,42400000,0,NULL,NULL);
INSERT INTO call VALUES(11,2,9,10,2,45000000,400000,400000,16,NULL,NULL);
CREATE TABLE slice (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    cpu INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL
);
INSERT INTO slice VALUES(1,1,0,0,5000000);
INSERT INTO slice VALUES(2,1,1,45200000,50000000);
INSERT INTO slice VALUES(3,2,1,0,50000000);
CREATE TABLE offcpu (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    preempted INTEGER NOT NULL,
    call_id INTEGER REFERENCES call (id)
);
INSERT INTO offcpu VALUES(1,1,5000000,45200000,0,8);
CREATE TABLE stack (
    id INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    address INTEGER NOT NULL,
    symbol_id INTEGER REFERENCES symbol (id),
    PRIMARY KEY (id, depth)
) WITHOUT ROWID;
INSERT INTO stack VALUES(1,0,105,11);
INSERT INTO stack VALUES(1,1,125,12);
INSERT INTO stack VALUES(2,0,8310,5);
INSERT INTO stack VALUES(2,1,4250,2);
INSERT INTO stack VALUES(2,2,4100,1);
CREATE TABLE stall (
    id INTEGER PRIMARY KEY,
    trigger TEXT NOT NULL,
    thread_id INTEGER REFERENCES thread (id),
    kind TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER,
    duration_ns INTEGER NOT NULL,
    threshold_ns INTEGER NOT NULL,
    state TEXT,
    syscall TEXT,
    waker TEXT,
    reason TEXT NOT NULL,
    fired INTEGER NOT NULL,
    waker_thread_id INTEGER REFERENCES thread (id),
    wake_ns INTEGER,
    timer TEXT,
    kernel_stack_id INTEGER,
    user_stack_id INTEGER,
    waker_stack_id INTEGER
);
INSERT INTO stall VALUES(1,'offcpu>20ms',1,'offcpu',5000000,45200000,40200000,20000000,'sleeping','futex','thread 4313 "writer"','thread 4312 "forwarder" off-CPU 40.2 ms in futex, woken by thread 4313 "writer"',1,2,45100000,NULL,1,2,NULL);
CREATE TABLE stall_attr (
    stall_id INTEGER NOT NULL REFERENCES stall (id),
    key TEXT NOT NULL,
    value,
    PRIMARY KEY (stall_id, key)
) WITHOUT ROWID;
CREATE TABLE mark (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER REFERENCES thread (id),
    cpu INTEGER,
    time_ns INTEGER NOT NULL,
    name TEXT NOT NULL,
    detail TEXT
);
CREATE TABLE gap (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER REFERENCES thread (id),
    cpu INTEGER,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT,
    bytes INTEGER
);
INSERT INTO gap VALUES(1,1,NULL,48000000,49000000,'overflow','the CPU lost packets',128);
CREATE TABLE summary (
    thread_id INTEGER PRIMARY KEY REFERENCES thread (id),
    calls INTEGER NOT NULL,
    depths INTEGER NOT NULL,
    start_ns INTEGER,
    end_ns INTEGER,
    first_level INTEGER,
    last_level INTEGER
);
CREATE TABLE function_summary (
    symbol_id INTEGER PRIMARY KEY REFERENCES symbol (id),
    calls INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,
    self_ns INTEGER NOT NULL,
    min_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL
);
CREATE TABLE tile (
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    level INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (thread_id, level, number, depth)
) WITHOUT ROWID;
CREATE VIEW calls AS
SELECT c.id, c.thread_id, t.tid, t.name AS thread, s.name AS function, m.name AS module, c.depth, c.parent_id,
       c.start_ns, c.start_ns + c.duration_ns AS end_ns, c.duration_ns, c.self_ns, m.kernel, c.flags & 255 AS flags,
       c.instructions, c.cycles, (SELECT file || ':' || line FROM source WHERE symbol_id = c.symbol_id) AS source
FROM call c
JOIN thread t ON t.id = c.thread_id
JOIN symbol s ON s.id = c.symbol_id
JOIN module m ON m.id = s.module_id;
CREATE VIEW threads AS
SELECT t.id, p.pid, t.tid, t.name, p.name AS process,
       (SELECT count(*) FROM call c WHERE c.thread_id = t.id) AS calls, t.start_ns, t.end_ns
FROM thread t
JOIN process p ON p.id = t.process_id;
CREATE VIEW functions AS
SELECT s.name AS function, m.name AS module, m.kernel, count(*) AS calls,
       sum(CASE WHEN c.flags & 256 THEN 0 ELSE c.duration_ns END) AS total_ns,
       sum(c.self_ns) AS self_ns, min(c.duration_ns) AS min_ns, max(c.duration_ns) AS max_ns,
       (SELECT file || ':' || line FROM source WHERE symbol_id = c.symbol_id) AS source
FROM call c
JOIN symbol s ON s.id = c.symbol_id
JOIN module m ON m.id = s.module_id
GROUP BY c.symbol_id;
CREATE VIEW stalls AS
SELECT l.id, l.trigger, l.thread_id, t.tid, t.name AS thread, l.kind, l.start_ns, l.end_ns, l.duration_ns,
       l.threshold_ns, l.state, l.syscall, l.waker, l.reason
FROM stall l
LEFT JOIN thread t ON t.id = l.thread_id;
CREATE VIEW gaps AS
SELECT id, thread_id, cpu, start_ns, end_ns, reason, detail FROM gap;
CREATE INDEX call_thread_start ON call (thread_id, start_ns);
CREATE INDEX call_symbol ON call (symbol_id);
CREATE INDEX call_parent ON call (parent_id);
CREATE INDEX slice_thread_start ON slice (thread_id, start_ns);
CREATE INDEX slice_cpu_start ON slice (cpu, start_ns);
CREATE INDEX offcpu_thread_start ON offcpu (thread_id, start_ns);
CREATE INDEX offcpu_call ON offcpu (call_id);
CREATE INDEX stall_start ON stall (start_ns);
CREATE INDEX gap_thread_start ON gap (thread_id, start_ns);
CREATE INDEX gap_start ON gap (start_ns);
CREATE INDEX mark_time ON mark (time_ns);
CREATE INDEX symbol_name ON symbol (name);
CREATE INDEX thread_tid ON thread (tid);
COMMIT;
