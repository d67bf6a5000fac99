#!/bin/bash
# Every format of `export`, read back by an independent reader (check_export.py) and compared with the database: a small trace that
# is known, a made one of 20,000 calls; ranges, threads, and outputs that fail.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
cd "$work" || exit 1
passed=0 failed=0

expect() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        failed=$((failed + 1))
    fi
}

{ echo "PRAGMA user_version = 1;"; cat "$SOURCE/tracedb/schema.sql" "$here/known.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 known.db
sqlite3 empty.db <<<"PRAGMA application_id = 0x73746c74; PRAGMA user_version = 1;"
sqlite3 empty.db <"$SOURCE/tracedb/schema.sql"
"$BUILD/tests/bench/make_trace" made.db 20000 3 || exit 1

for format in perfetto chrome folded speedscope svg html; do
    for db in known made; do
        expect "$db to $format" "$STALLTRAP" export $db.db --to $format -o $db.$format
        expect "$db to $format is the trace" /usr/bin/python3 "$here/check_export.py" $format $db.$format $db.db
        "$STALLTRAP" export $db.db --to $format >$db.stdout
        expect "$db to $format on stdout is the same" cmp $db.$format $db.stdout
    done
    expect "an empty trace to $format" "$STALLTRAP" export empty.db --to $format -o empty.$format
done
expect "an empty trace is valid JSON" python3 -m json.tool empty.chrome /dev/null
expect "an empty trace is valid JSON for speedscope" python3 -m json.tool empty.speedscope /dev/null

# Ranges and threads: nanoseconds that can be added up by hand.
folded() { # EXPECTED OPTION...
    local want=$1
    shift
    [ "$("$STALLTRAP" export known.db --to folded "$@" | sort)" = "$want" ]
}
expect "a range is cut at its ends" folded "main 100;main 60000
main 100;main;work 20000
main 100;main;work;leaf 20000" --thread main --from 3ms --to-time 3100us
expect "a range within a wait" folded "main 100;main;read;[syscall]_[k];[off-CPU] 100000" --thread 100 --from 3300us --to-time 3400us
expect "a thread by its name" folded "helper 101;helper_main 9000000
helper 101;helper_main;work 3000000" --thread helper
expect "two threads" [ "$("$STALLTRAP" export known.db --to folded --thread 100 --thread 101 | awk '{s += $NF} END {print s}')" = 22000000 ]

refused() { # STATUS PATTERN ARGUMENT...
    local status=$1 pattern=$2
    shift 2
    "$STALLTRAP" export "$@" >refused.out 2>refused.err
    [ $? -eq "$status" ] && grep -q "$pattern" refused.err && [ ! -s refused.out ]
}
expect "an unknown format" refused 2 "did you mean 'perfetto'" known.db --to perfeto
expect "no format" refused 2 "to which format" known.db
expect "an unknown thread" refused 1 "no thread 'nobody'" known.db --to chrome --thread nobody
expect "a range without time" refused 2 "is not before" known.db --to chrome --from 2ms --to-time 1ms
expect "no such folder" refused 1 "nowhere" known.db --to chrome -o nowhere/x.json
expect "a full disk" bash -c '! "$0" export made.db --to chrome >/dev/full 2>full.err && grep -q "No space" full.err' "$STALLTRAP"
echo "what was there" >kept.json
head -c 500000 made.db >cut.db
expect "a damaged trace" refused 1 "malformed" cut.db --to chrome -o kept.json
expect "a failed export leaves the file that was there" grep -qx "what was there" kept.json
expect "and nothing beside it" [ -z "$(ls -A | grep '^\.')" ]

# Of the picture: a microsecond a column. Waits that begin in one column are one strip from the first's beginning to the last's end; one that
# begins where another has just ended is its own.
{ echo "PRAGMA user_version = 4;"; cat "$SOURCE/tracedb/schema.sql"; cat <<'SQLEND'; cat "$SOURCE/tracedb/indexes.sql"; } | sqlite3 waits.db
PRAGMA application_id = 0x73746c74;
INSERT INTO process (id, pid, name) VALUES (1, 1, 'p');
INSERT INTO thread (id, process_id, tid, name) VALUES (1, 1, 1, 't');
INSERT INTO module (id, name, path, kernel) VALUES (1, 'm', 'm', 0);
INSERT INTO symbol VALUES (1, 1, 'main', 1, 1);
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES (1, 1, 1, NULL, 0, 0, 1600000, 1600000, 0);
INSERT INTO offcpu (id, thread_id, start_ns, end_ns, preempted, call_id) VALUES (1, 1, 100000, 200000, 0, 1), (2, 1, 200500, 300000, 0, 1),
    (3, 1, 400000, 400200, 0, 1), (4, 1, 400600, 450000, 0, 1);
SQLEND
"$STALLTRAP" export waits.db --to svg | sed -n 's/.*class="off" x="\([0-9.]*\)".*width="\([0-9.]*\)".*<title>\(.*\)<\/title>.*/\1+\2 \3/p' >strips
expect "the strips of a picture's waits" diff - strips <<'END'
100.00+100.00 waiting 100 us
200.50+99.50 waiting 99.5 us
400.00+50.00 off-CPU, several times in 50.0 us
END

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 50 ]
