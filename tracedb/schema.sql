-- The trace database, version 4. Every table and column is documented in docs/schema.md.
-- Times are integer nanoseconds of the clock that meta.clock names, since meta.origin_perf_ns.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE process (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    name TEXT NOT NULL,
    parent_pid INTEGER,
    start_ns INTEGER,
    end_ns INTEGER
);

CREATE TABLE thread (
    id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process (id),
    tid INTEGER NOT NULL,
    name TEXT NOT NULL,
    start_ns INTEGER,
    end_ns INTEGER
);

-- A thread's names over time; thread.name is the last one.
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

CREATE TABLE symbol (
    id INTEGER PRIMARY KEY,
    module_id INTEGER NOT NULL REFERENCES module (id),
    name TEXT NOT NULL,
    address INTEGER NOT NULL,
    size INTEGER NOT NULL
);

-- Where the debug information says that a function begins.
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

-- Where in `call` the times of a thread are (docs/schema.md, Calls by time): its ids are in the order of (thread_id, start_ns).
CREATE TABLE call_time (
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    start_ns INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (thread_id, start_ns, id)
) WITHOUT ROWID;

CREATE TABLE slice (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    cpu INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL
);

CREATE TABLE offcpu (
    id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    preempted INTEGER NOT NULL,
    call_id INTEGER REFERENCES call (id)
);

CREATE TABLE stack (
    id INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    address INTEGER NOT NULL,
    symbol_id INTEGER REFERENCES symbol (id),
    PRIMARY KEY (id, depth)
) WITHOUT ROWID;

-- Where in the source the frames of user stacks are; functions that were inlined there are levels of their own.
CREATE TABLE stack_line (
    stack_id INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    level INTEGER NOT NULL,
    function TEXT,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    PRIMARY KEY (stack_id, depth, level)
) WITHOUT ROWID;

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
       coalesce((SELECT y.calls FROM summary y WHERE y.thread_id = t.id),
                (SELECT count(*) FROM call c WHERE c.thread_id = t.id)) AS calls, t.start_ns, t.end_ns
FROM thread t
JOIN process p ON p.id = t.process_id;

-- Bit 256 of call.flags: an ancestor is the same function, so its time is already counted.
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

-- For viewers: what each thread holds, and its calls at every zoom (docs/schema.md, Tiles).
CREATE TABLE summary (
    thread_id INTEGER PRIMARY KEY REFERENCES thread (id),
    calls INTEGER NOT NULL,
    depths INTEGER NOT NULL,
    start_ns INTEGER,
    end_ns INTEGER,
    first_level INTEGER,
    last_level INTEGER
);

-- What the view functions counts.
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
