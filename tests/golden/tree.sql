-- The tree of the calls between own functions, in the form of tests/workloads/README.md, from the views alone.
-- Own functions: table own(function), modules: table own_module(module), both made by the caller.
-- Left out beside all others: frames whose call was not seen (flag 1), such as those inherited by a forked child.
WITH RECURSIVE
listed AS (
    SELECT id, parent_id, thread_id, function, flags,
           flags & 1 = 0 AND module IN (SELECT module FROM own_module) AND function IN (SELECT function FROM own) AS own
    FROM calls
),
placed(id, thread_id, function, flags, own, level) AS (
    SELECT id, thread_id, function, flags, own, own FROM listed WHERE parent_id IS NULL
    UNION ALL
    SELECT l.id, l.thread_id, l.function, l.flags, l.own, p.level + l.own FROM listed l JOIN placed p ON l.parent_id = p.id
),
lines AS (
    SELECT thread_id, id, printf('%*s%s', 2 * level, '', function) AS line FROM placed WHERE own
    UNION ALL
    SELECT id, 0, 'thread ' || name FROM threads WHERE id IN (SELECT thread_id FROM placed WHERE own)
)
SELECT line FROM lines ORDER BY thread_id, id;
