#!/bin/bash
# The way to the first look at one recording, three times: this program's; perf's own (export-to-sqlite.py, then the queries of
# exported-sql-viewer.py's call tree); and a Chrome trace loaded as JSON, as trace viewers in a browser do. One line a figure.
# usage: viewer_beside.sh PERF.DATA [BUILD-ID-FOLDER [SYMFS]]   BUILD is the build folder
set -euo pipefail
BUILD=$(realpath "${BUILD:-build}")
data=$1 ids=() files=()
[ $# -lt 2 ] || ids=(--buildid-dir "$2")
[ $# -lt 3 ] || files=(--symfs "$3")
export_script=/usr/lib/perf-core/scripts/python/export-to-sqlite.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/trace.db

# Runs COMMAND; leaves its seconds in $seconds and the memory it needed in $mebibytes.
run() { # COMMAND...
    /usr/bin/time -o "$work/time" -f '%e %M' "$@" >"$work/out" 2>"$work/err" || { tail -n 5 "$work/err" >&2; return 1; }
    read -r seconds mebibytes <"$work/time"
    mebibytes=$((mebibytes / 1024))
}

run "$BUILD/stalltrap" decode "${ids[@]}" "${files[@]}" "$data" -o "$db"
calls=$(sqlite3 "$db" "SELECT value FROM meta WHERE key = 'calls'")
echo "beside_decode $seconds s vs nothing: stalltrap decode, $calls calls, $mebibytes MiB"
keys='0wwwwddaaL<Enter>LLuuhhllss0<Tab><S-Tab>wwwwwwddaassss0'
run "$BUILD/stalltrap" view "$db" --size 200x60 --keys "$keys" --frames "$work/frames"
echo "beside_first $(awk 'NR == 1 { printf "%.4f", $1 / 1e9 }' "$work/frames") s vs nothing: stalltrap view, the first frame, $mebibytes MiB"
echo "beside_key $(tail -n +2 "$work/frames" | sort -n | tail -n 1 | awk '{ printf "%.4f", $1 / 1e9 }') s vs nothing: the slowest of $(($(wc -l <"$work/frames") - 1)) frames after a key"

run "$BUILD/stalltrap" export "$db" --to chrome -o "$work/chrome.json"
echo "beside_chrome_export $seconds s vs nothing: stalltrap export --to chrome, $(($(stat -c %s "$work/chrome.json") >> 20)) MiB"
# V8 takes no text of more than 512 MiB, so neither does a page that calls JSON.parse: then Python's reader says how long it takes.
if run node --max-old-space-size=16384 -e 'const t = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).traceEvents;
    t.sort((a, b) => a.ts - b.ts); console.log(t.length)' "$work/chrome.json"; then
    echo "beside_chrome_load $seconds s vs stalltrap view: node's JSON.parse and a sort of $(cat "$work/out") events, $mebibytes MiB"
else
    run /usr/bin/python3 -c 'import json, sys
t = json.load(open(sys.argv[1]))["traceEvents"]; t.sort(key=lambda e: e.get("ts", 0)); print(len(t))' "$work/chrome.json"
    echo "beside_chrome_load $seconds s vs stalltrap view: Python's json.load and a sort of $(cat "$work/out") events (JSON.parse refuses it), $mebibytes MiB"
fi
rm -f "$work/chrome.json"

if ! [ -e "$export_script" ] || ! /usr/bin/python3 -c 'import PySide2.QtSql' 2>/dev/null; then
    echo "viewer_beside.sh: perf's export needs linux-perf and python3-pyside2.qtsql: not measured" >&2
    exit 1
fi
cd "$work"
run perf "${ids[@]}" script -i "$data" --itrace=cr -s "$export_script" perf.db branches calls
perf_calls=$(sqlite3 perf.db 'SELECT count(*) FROM calls')
echo "beside_perf_export $seconds s vs stalltrap decode: perf script -s export-to-sqlite.py, $perf_calls calls, $mebibytes MiB"
if [ "$perf_calls" -lt $((calls / 2)) ]; then
    echo "viewer_beside.sh: perf found $perf_calls of $calls calls: that is no comparison" >&2
    exit 1
fi
# What opens the tree's first two levels of a thread (class CallGraphLevelTwoPlusItemBase of perf's viewer).
run /usr/bin/python3 - perf.db <<'PYEND'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
comm, thread = db.execute("SELECT comm_id, thread_id FROM calls WHERE id >= (SELECT max(id) / 2 FROM calls) LIMIT 1").fetchone()
level = """SELECT call_path_id, name, short_name, COUNT(calls.id), SUM(return_time - call_time), SUM(insn_count), SUM(cyc_count), SUM(branch_count)
           FROM calls INNER JOIN call_paths ON calls.call_path_id = call_paths.id INNER JOIN symbols ON call_paths.symbol_id = symbols.id
           INNER JOIN dsos ON symbols.dso_id = dsos.id WHERE parent_call_path_id = ? AND comm_id = ? AND thread_id = ?
           GROUP BY call_path_id, name, short_name ORDER BY call_path_id"""
top = db.execute(level, (1, comm, thread)).fetchall()
print(len(top), sum(len(db.execute(level, (row[0], comm, thread)).fetchall()) for row in top))
PYEND
echo "beside_perf_query $seconds s vs stalltrap view's first frame: the two outer levels of perf's call graph, $mebibytes MiB"
