#!/bin/bash
# check_db.sh TRACE.db: what must hold in every trace database. Prints nothing and ends with 0, or a line a broken rule and 1.
set -u
db=$1
bad=0

# RULE QUERY: the query counts the rows that break the rule.
rule() {
    local n
    n=$(sqlite3 -readonly "$db" "$2") || n='an error'
    [ "$n" = 0 ] && return
    echo "$db: $1: $n"
    bad=1
}

[ "$(sqlite3 -readonly "$db" 'PRAGMA integrity_check')" = ok ] || { echo "$db: integrity_check fails"; bad=1; }
rule 'rows that refer to none' 'SELECT count(*) FROM pragma_foreign_key_check'
rule 'calls of negative length' 'SELECT count(*) FROM call WHERE duration_ns < 0 OR self_ns < 0 OR self_ns > duration_ns OR start_ns < 0'
rule 'calls that stick out of their parents' 'SELECT count(*) FROM call c JOIN call p ON p.id = c.parent_id
    WHERE c.start_ns < p.start_ns OR c.start_ns + c.duration_ns > p.start_ns + p.duration_ns'
rule 'calls whose parent is not their own' 'SELECT count(*) FROM call c JOIN call p ON p.id = c.parent_id
    WHERE c.depth != p.depth + 1 OR c.thread_id != p.thread_id OR c.id <= p.id'
rule 'outermost calls that are deep' 'SELECT count(*) FROM call WHERE (parent_id IS NULL) != (depth = 0)'
rule 'calls out of order' 'SELECT count(*) FROM (SELECT thread_id, start_ns, lag(thread_id) OVER w AS t, lag(start_ns) OVER w AS s
    FROM call WINDOW w AS (ORDER BY id)) WHERE t > thread_id OR (t = thread_id AND s > start_ns)'
rule 'calls that their times do not lead to' 'SELECT count(*) FROM (SELECT c.id, c.thread_id, c.start_ns,
    (SELECT k.id FROM call_time k WHERE k.thread_id = c.thread_id AND k.start_ns < c.start_ns ORDER BY k.start_ns DESC, k.id DESC LIMIT 1) AS first,
    (SELECT k.id FROM call_time k WHERE k.thread_id = c.thread_id AND k.start_ns >= c.start_ns + 1 ORDER BY k.start_ns, k.id LIMIT 1) AS last
    FROM call c) c WHERE NOT coalesce(id >= first AND id < last AND (last - first <= 192
    OR (SELECT count(*) FROM call o WHERE o.id BETWEEN first AND last AND o.start_ns = c.start_ns) > 64), 0)'
rule 'calls of one depth that overlap' 'SELECT count(*) FROM (SELECT start_ns, max(start_ns + duration_ns) OVER
    (PARTITION BY thread_id, depth ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until FROM call) WHERE until > start_ns'
rule 'calls whose parts do not sum up' 'SELECT count(*) FROM call p
    JOIN (SELECT parent_id, sum(duration_ns) AS inside FROM call GROUP BY parent_id) c ON c.parent_id = p.id
    WHERE p.self_ns + c.inside > p.duration_ns'
rule 'time off the CPU that is not left out of self time' 'SELECT count(*) FROM (SELECT c.id FROM call c
    JOIN offcpu o ON o.call_id = c.id WHERE o.start_ns >= c.start_ns AND o.end_ns <= c.start_ns + c.duration_ns
    GROUP BY c.id HAVING c.self_ns + sum(o.end_ns - o.start_ns) > c.duration_ns)'
rule 'times before 0' 'SELECT (SELECT count(*) FROM slice WHERE start_ns < 0) + (SELECT count(*) FROM offcpu WHERE start_ns < 0)
    + (SELECT count(*) FROM stall WHERE start_ns < 0) + (SELECT count(*) FROM gap WHERE start_ns < 0) + (SELECT count(*) FROM mark WHERE time_ns < 0)'
rule 'times that end before they start' 'SELECT (SELECT count(*) FROM slice WHERE end_ns < start_ns)
    + (SELECT count(*) FROM offcpu WHERE end_ns < start_ns) + (SELECT count(*) FROM stall WHERE end_ns < start_ns)
    + (SELECT count(*) FROM gap WHERE end_ns < start_ns)'
rule 'functions whose sums differ' 'SELECT count(*) FROM (SELECT sum(self_ns) AS s FROM functions) WHERE s != (SELECT sum(self_ns) FROM call)'
exit $bad
