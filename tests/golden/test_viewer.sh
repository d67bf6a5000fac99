#!/bin/bash
# Screens of `view` after scripted keys, and the text of `report` and `query`, against the files of tests/golden/viewer.
# UPDATE=1 writes what comes out as the new expectation.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 TERM=dumb
unset COLUMNS
failed=0
count=0

make_db() { # FILE [SQL-FILE]
    { echo "PRAGMA user_version = 1;"; cat "$SOURCE/tracedb/schema.sql" "${2:-/dev/null}" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 "$1"
}

compare() { # NAME: work/NAME.out against the expectation
    count=$((count + 1))
    if [ -n "${UPDATE:-}" ]; then
        cp "$work/$1.out" "$here/$1.txt"
    elif ! diff -u "$here/$1.txt" "$work/$1.out"; then
        echo "FAILED: $1"
        failed=$((failed + 1))
    fi
}

make_db "$work/t.db" "$here/trace.sql"
sqlite3 "$work/empty.db" <<<"PRAGMA application_id = 0x73746c74;"
make_db "$work/empty.db"

while IFS='|' read -r name options; do
    case $name in ''|\#*) continue ;; esac
    # shellcheck disable=SC2086
    (cd "$work" && "$STALLTRAP" view t.db $options --screen - >"$name.out" 2>&1) || { echo "FAILED: view $name: exit $?"; failed=$((failed + 1)); }
    compare "$name"
done <"$here/cases"

run() { # NAME COMMAND...: output and exit status
    local name=$1
    shift
    (cd "$work" && "$STALLTRAP" "$@" >"$name.out" 2>&1; echo "exit $?" >>"$name.out")
    compare "$name"
}
run empty-view view empty.db --size 60x10
run empty-report report empty.db
run report-why report t.db
run report-top report t.db top
run report-stalls report t.db stalls
run report-offcpu report t.db offcpu
run report-gaps report t.db gaps
# The waker's stack as it woke the thread is told, not the open calls of the last sample before.
echo "UPDATE stack SET symbol_id = 8 WHERE id = 3 AND depth = 0;" >"$work/waker-elsewhere.sql"
echo "DELETE FROM stall_attr WHERE key = 'waker_user_stack_id';" >"$work/waker-unknown.sql"
for waker in elsewhere unknown; do
    cat "$here/trace.sql" "$work/waker-$waker.sql" >"$work/w.sql"
    make_db "$work/waker-$waker.db" "$work/w.sql"
    run report-waker-$waker report waker-$waker.db
done
for cause in preempted send-buffer send-room busy untraced back-off alike-waits sampled-wait; do
    cat "$here/trace.sql" "$here/$cause.sql" >"$work/$cause.sql"
    make_db "$work/$cause.db" "$work/$cause.sql"
    run report-$cause report $cause.db --stall 2
done
# Of a sampled thread of whose wait there is no stack nobody knows where it waited.
run report-sampled-wait-nowhere report sampled-wait.db --stall 3
cat "$here/trace.sql" "$here/inlined.sql" >"$work/inlined.sql"
make_db "$work/inlined.db" "$work/inlined.sql"
run report-inlined report inlined.db --stall 90
run report-typo report t.db tpo
run report-no-stall report t.db why --stall 7
run query-table query t.db 'SELECT function, duration_ns, duration(self_ns) AS self FROM calls ORDER BY id'
run query-csv query t.db "SELECT 'a,b' AS x, 'say \"hi\"' AS y, NULL AS z, 7 AS n" --format csv
run query-json query t.db "SELECT char(27) || '\"' AS x, NULL AS z, 7 AS n, 1.5 AS f, x'00ff' AS b" --format json
run query-place query t.db $'SELECT function,\n duratio(3) FROM calls'
run query-write query t.db 'DELETE FROM call'
run query-attach query t.db "ATTACH '$work/other.db' AS o"
run query-timeout query t.db 'WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a' --timeout 100ms
run query-percentile query t.db 'SELECT percentile(duration_ns, 50) AS p50, percentile(duration_ns, 100) AS worst FROM calls'
run query-schema query t.db --schema
run bad-key view t.db --keys '<Entr>'
run bad-size view t.db --size 80
run no-file view nothing.db

echo "not a database, long enough to be read as one ..........................................................................." >"$work/text.db"
run not-sqlite query text.db 'SELECT 1'
sqlite3 "$work/other.db" 'CREATE TABLE x(y)'
run other-database query other.db 'SELECT 1'
cp "$work/t.db" "$work/newer.db"
sqlite3 "$work/newer.db" 'PRAGMA user_version = 99'
run newer-schema query newer.db 'SELECT 1'

# JSON of every view is JSON, and nothing unprintable leaves on a screen.
for view in calls threads functions stalls gaps; do
    count=$((count + 1))
    "$STALLTRAP" query "$work/t.db" "SELECT * FROM $view" --format json | python3 -m json.tool >/dev/null || { echo "FAILED: JSON of $view"; failed=$((failed + 1)); }
done
# The first selection is the call that was there for most of the stall, not the one that ended as it began.
count=$((count + 1))
cp "$work/t.db" "$work/busy.db"
sqlite3 "$work/busy.db" "UPDATE stall SET thread_id = (SELECT id FROM thread WHERE name = 'writer'), start_ns = 2500000, end_ns = 45000000,
    duration_ns = 42500000 WHERE id = (SELECT value FROM meta WHERE key = 'trigger_stall_id')"
"$STALLTRAP" view "$work/busy.db" --size 80x24 --screen - | grep -q '^hold_lock_for_flush ' || { echo "FAILED: first selection"; failed=$((failed + 1)); }

# A terminal that cannot move its cursor gets the text, and a locale without line drawing gets ASCII.
count=$((count + 2))
(cd "$work" && "$STALLTRAP" view t.db --size 80x12 --screen - >text.out &&
    timeout 60 script -qec "'$STALLTRAP' view t.db --size 80x12" /dev/null </dev/null | tr -d '\r' >dumb.out)
diff -u "$work/text.out" "$work/dumb.out" || { echo "FAILED: view on a dumb terminal"; failed=$((failed + 1)); }
(cd "$work" && LC_ALL=C "$STALLTRAP" view t.db --size 80x12 >plain.out)
if [ ! -s "$work/plain.out" ] || LC_ALL=C grep -n '[^ -~]' "$work/plain.out"; then
    echo "FAILED: more than ASCII in the C locale"
    failed=$((failed + 1))
fi
if grep -l $'\033' "$work"/*.out; then
    echo "FAILED: an escape byte came out"
    failed=$((failed + 1))
fi
echo "$((count - failed)) passed, $failed failed"
[ "$failed" = 0 ] && [ "$count" -gt 50 ]
