#!/bin/bash
# Every report on a trace whose answers are known by construction (known.sql; the expected texts were checked against it by hand),
# in all formats; the SQL that --sql prints gives the same through `query`. UPDATE=1 writes what comes out as the new expectation.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 TERM=dumb
unset COLUMNS
cd "$work" || exit 1
passed=0 failed=0

{ echo "PRAGMA user_version = 1;"; cat "$SOURCE/tracedb/schema.sql" "$here/known.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 known.db
cp known.db slower.db
sqlite3 slower.db <"$here/slower.sql"
sqlite3 empty.db <<<"PRAGMA application_id = 0x73746c74; PRAGMA user_version = 1;"
sqlite3 empty.db <"$SOURCE/tracedb/schema.sql"

result() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1"
        failed=$((failed + 1))
    fi
}

compare() { # NAME COMMAND...: output and exit status against the file known-NAME.txt
    local name=$1
    shift
    "$STALLTRAP" "$@" >out 2>&1
    echo "exit $?" >>out
    if [ -n "${UPDATE:-}" ]; then
        cp out "$here/known-$name.txt"
    fi
    diff -u "$here/known-$name.txt" out
    result "$name" $?
}

same_sql() { # NAME [FUNCTION]: csv of the report is csv of its SQL
    local name=$1 parameters=()
    "$STALLTRAP" report known.db "$@" --format csv >report.csv &&
        "$STALLTRAP" report known.db "$name" --sql >sql || return 1
    for parameter in limit depth; do
        grep -q ":$parameter" sql && parameters+=(--param $parameter=NULL)
    done
    [ $# -gt 1 ] && parameters+=(--param "function=$2")
    "$STALLTRAP" query known.db - "${parameters[@]}" --format csv <sql >query.csv && cmp report.csv query.csv
}

while read -r name function; do
    compare "$name" report known.db $name ${function:+"$function"}
    "$STALLTRAP" report known.db $name ${function:+"$function"} --format json | python3 -c "
import csv, json, subprocess, sys
rows = json.load(sys.stdin)
table = list(csv.DictReader(subprocess.run(sys.argv[1:] + ['--format', 'csv'], capture_output=True, text=True, check=True).stdout.splitlines()))
assert rows and len(rows) == len(table) and [list(r) for r in rows] == [list(r) for r in table]
assert all(v is None or isinstance(v, (int, float)) for r in rows for k, v in r.items() if k.endswith('_ns'))
" "$STALLTRAP" report known.db $name ${function:+"$function"}
    result "$name: JSON and CSV tell the same, times in ns" $?
    same_sql $name ${function:+"$function"}
    result "$name: the printed SQL gives the same" $?
    "$STALLTRAP" report known.db $name ${function:+"$function"} --sql | head -1 | grep -q '^-- '
    result "$name: says what it is" $?
    if [ -z "$function" ]; then
        "$STALLTRAP" report empty.db $name >empty.out
        result "$name of an empty trace" $?
    fi
done <<'END_OF_LIST'
top
tree
callers read
latency work
worst main
offcpu
wakers
sched
tenancy
syscalls
gaps
stalls
END_OF_LIST

compare callers-pattern report known.db callers '*fib'
compare compare report compare known.db slower.db
compare compare-words report known.db compare slower.db --format csv
compare compare-same report known.db compare known.db
compare compare-what report compare known.db
compare compare-nothing report known.db compare nothing.db
compare limit report known.db top --limit 2
compare depth report known.db tree --depth 1
compare no-function report known.db latency
compare function-typo report known.db latency wrk
compare function-part report known.db worst fib
compare too-much report known.db top work
compare parameter query known.db 'SELECT function, count(*) AS n FROM calls WHERE duration_ns > :least AND function = $f GROUP BY 1' \
    --param least=60000 -p f=work
compare parameter-kinds query known.db 'SELECT ?1 AS a, ?2 + 1 AS b, ?3 + 1 AS c, ?4 IS NULL AS d' -p 1=x -p 2=1.5 -p 3=41 -p 4=NULL
compare parameter-missing query known.db 'SELECT :x'
compare parameter-unused query known.db 'SELECT 1' --param y=3
compare parameter-wrong query known.db 'SELECT :x' --param x
compare histogram query known.db "SELECT histogram(duration_ns) AS h, bucket(1023) AS b, bucket(0) AS z, bar(50, 100, 10) AS half, bar(1, 1000, 10) AS
    little, percentile(duration_ns, 90) AS p90 FROM calls WHERE function = 'leaf'"
compare percentiles query known.db "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 999), v AS (SELECT x * 7919 % 1000 + 1 AS v, x % 3 AS w FROM n)
    SELECT percentiles(v, 0, 0.1, 50, 90, 99, 100) AS p, percentiles(v / 4.0, 50) AS quarters, percentiles(w, 33, 34, 100) AS few, percentiles(5, 1, 99) AS same, percentiles(9e999, 50) ->> 0 AS most FROM v"
compare no-values query known.db "SELECT histogram(duration_ns) AS h, percentile(duration_ns, 50) AS p, bucket(NULL) AS b FROM calls WHERE 0"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 70 ]
