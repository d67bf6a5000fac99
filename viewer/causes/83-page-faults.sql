-- Page faults from disk that add up: most of the stall the thread waited inside of the kernel's fault for a file's page or a swapped one.
WITH RECURSIVE l AS (SELECT * FROM stall WHERE id = ?1),
     away AS MATERIALIZED (
         SELECT o.id, o.call_id, min(o.end_ns, l.start_ns + l.duration_ns) - max(o.start_ns, l.start_ns) AS ns
         FROM l JOIN offcpu o ON o.thread_id = l.thread_id AND o.start_ns < l.start_ns + l.duration_ns AND o.end_ns > l.start_ns
         WHERE NOT o.preempted AND o.call_id IS NOT NULL ORDER BY 3 DESC LIMIT 1000),
     up(id, call_id) AS (
         SELECT id, call_id FROM away UNION SELECT up.id, c.parent_id FROM up JOIN call c ON c.id = up.call_id WHERE c.parent_id IS NOT NULL),
     faults AS (SELECT sum(away.ns) AS ns, count(*) AS times FROM away WHERE away.id IN (
         SELECT up.id FROM up JOIN call c ON c.id = up.call_id JOIN symbol s ON s.id = c.symbol_id
         WHERE s.name IN ('filemap_fault', 'do_swap_page')))
SELECT 'page fault from disk' AS cause,
       'the thread waited for ' || duration(faults.ns) || ' of the ' || duration(l.duration_ns) || ' in ' || faults.times ||
       CASE faults.times WHEN 1 THEN ' fault' ELSE ' faults' END || ' that read pages from disk' AS evidence
FROM l JOIN faults
WHERE faults.ns * 3 >= l.duration_ns
