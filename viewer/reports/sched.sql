-- Each time a thread left its CPU, the longest absences first: its state, where it was, who took the CPU, and where it came back.
WITH away AS (
    SELECT o.id, o.thread_id, o.start_ns, o.end_ns, o.preempted, o.call_id,
           (SELECT l.cpu FROM slice l WHERE l.thread_id = o.thread_id AND l.start_ns <= o.start_ns ORDER BY l.start_ns DESC LIMIT 1) AS cpu,
           (SELECT l.cpu FROM slice l WHERE l.thread_id = o.thread_id AND l.start_ns >= o.end_ns ORDER BY l.start_ns LIMIT 1) AS back_cpu
    FROM offcpu o
    ORDER BY o.end_ns - o.start_ns DESC, o.id
    LIMIT coalesce(:limit, 200)
)
SELECT t.name AS thread, t.tid, a.start_ns AS at_ns, a.end_ns - a.start_ns AS away_ns,
       CASE WHEN a.preempted THEN 'preempted'
            ELSE coalesce((SELECT l.state FROM stall l WHERE l.thread_id = a.thread_id AND l.start_ns = a.start_ns), 'waiting') END AS state,
       s.name AS function, a.cpu,
       (SELECT n.name || ' ' || n.tid
        FROM slice l JOIN thread n ON n.id = l.thread_id
        WHERE l.cpu = a.cpu AND l.start_ns >= a.start_ns AND l.start_ns < a.end_ns AND l.thread_id <> a.thread_id
        ORDER BY l.start_ns LIMIT 1) AS cpu_went_to,
       a.back_cpu
FROM away a
JOIN thread t ON t.id = a.thread_id
LEFT JOIN call c ON c.id = a.call_id
LEFT JOIN symbol s ON s.id = c.symbol_id
ORDER BY away_ns DESC, a.id
