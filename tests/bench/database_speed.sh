#!/bin/bash
# The speed from a perf.data to the database: one line a figure, `NAME VALUE UNIT vs WHAT`. What is compared runs in turns in one
# run; the least seconds of the rounds count, of the clock and of the processor (of all threads together). Files go to memory.
# usage: database_speed.sh PERF.DATA [BUILD-ID-FOLDER]   BUILD is the build folder; EXPORT=no leaves perf's export out, which
# takes minutes
set -euo pipefail
BUILD=$(realpath "${BUILD:-build}")
data=$1 ids=()
[ $# -lt 2 ] || ids=(--buildid-dir "$2")
rounds=${ROUNDS:-3}
scratch=$(mktemp -d "${BENCH_DIR:-/dev/shm}/stalltrap-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
exporter=/usr/lib/perf-core/scripts/python/export-to-sqlite.py

# Adds a line "CLOCK CPU KB" to NAME, KB the most memory. perf's Python is the system's, whatever comes first in PATH.
measure() { # NAME COMMAND...
    local name=$1
    shift
    PATH=/usr/bin:/bin:/usr/sbin /usr/bin/time -q -o "$scratch/time" -f '%e %U %S %M' "$@" >"$scratch/out" 2>"$scratch/err" || {
        tail -n 3 "$scratch/err" >&2
        return 1
    }
    awk '{ print $1, $2 + $3, $4 }' "$scratch/time" >>"$scratch/$name"
}
most() { cut -d' ' -f"$2" "$scratch/$1" | sort -g | tail -n 1; } # NAME 1|2|3
least() { cut -d' ' -f"$2" "$scratch/$1" | sort -g | head -n 1; } # NAME 1|2
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }
decode() { # NAME OPTION...
    local name=$1
    shift
    measure "$name" "$BUILD/stalltrap" decode --force "${ids[@]}" "$@" "$data" -o "$scratch/$name.db"
}
# The pages of files that are kept in memory are dropped, where that is allowed.
forget() { sync && { echo 1 >/proc/sys/vm/drop_caches; } 2>/dev/null; }

if forget; then
    decode cold
    echo "db_cold $(least cold 1) s vs nothing: decode to the database, files not in memory yet"
fi
for ((i = 0; i < rounds; i++)); do
    measure cr perf "${ids[@]}" script -i "$data" --itrace=cr
    decode bare --bare
    decode whole
    decode one --threads 1
done
calls=$(sqlite3 "$scratch/whole.db" "SELECT value FROM meta WHERE key = 'calls'")
bytes() { stat -c %s "$scratch/$1.db"; }
echo "db_calls $calls calls vs $(sqlite3 "$scratch/whole.db" "SELECT value FROM meta WHERE key = 'trace_bytes'") bytes of trace: $data," \
    "$(perf evlist -v -i "$data" 2>/dev/null | grep -o 'intel_pt[^ ]*' | head -n 1)"
for name in bare whole one; do
    echo "db_$name $(least $name 1) s vs $(least $name 2) s of processor: $(ratio "$calls" "$(least $name 1)") calls/s," \
        "$(ratio "$(bytes $name)" "$calls") bytes a call"
    echo "db_${name}_perf $(ratio "$(least cr 1)" "$(least $name 1)") times faster vs perf script --itrace=cr with symbols" \
        "($(ratio "$(least cr 2)" "$(least $name 2)") in processor time; goal of bare: 4)"
    echo "db_${name}_memory $(most $name 3) kB at most vs $(($(sqlite3 "$scratch/whole.db" "SELECT value FROM meta WHERE key = 'trace_bytes'") / 1024)) kB of trace"
done
[ "${EXPORT:-yes}" = yes ] || exit 0
ulimit -s unlimited # it takes a level of its own stack for each level of a call path, and these may be 100,000 deep
if measure export perf "${ids[@]}" script -i "$data" -s "$exporter" "$scratch/export.db" branches calls; then
    echo "db_export $(least export 1) s vs nothing: perf's SQLite export," \
        "$(ratio "$(bytes export)" "$(sqlite3 "$scratch/export.db" 'SELECT count(*) FROM calls')") bytes a call"
    echo "db_bare_export $(ratio "$(least export 1)" "$(least bare 1)") times faster vs perf's SQLite export" \
        "($(ratio "$(least export 2)" "$(least bare 2)") in processor time; goal: 60)"
    echo "db_whole_export $(ratio "$(least export 1)" "$(least whole 1)") times faster vs perf's SQLite export" \
        "($(ratio "$(least export 2)" "$(least whole 2)") in processor time; goal: 20)"
    awk -v ours="$(ratio "$(bytes whole)" "$calls")" -v theirs="$(ratio "$(bytes export)" "$(sqlite3 "$scratch/export.db" 'SELECT count(*) FROM calls')")" \
        'BEGIN { printf "db_whole_bytes %.2f of the bytes a call vs perf\047s SQLite export (goal: 0.5)\n", ours / theirs }'
else
    echo "db_export 0 s vs nothing: perf's SQLite export failed on this trace"
fi
