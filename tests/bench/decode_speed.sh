#!/bin/bash
# The speed of control flow: one line a figure, `NAME VALUE UNIT vs WHAT`. What is compared runs in turns, and the least
# processor time of the rounds counts: this machine does other things too.
# usage: decode_speed.sh PERF.DATA [BUILD-ID-FOLDER]   BUILD is the build folder
set -euo pipefail
BUILD=$(realpath "${BUILD:-build}")
data=$1 ids=()
[ $# -lt 2 ] || ids=(--buildid-dir "$2")
rounds=${ROUNDS:-3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The seconds of processor time that COMMAND takes: of its threads together.
cpu() { # COMMAND...
    local TIMEFORMAT='%U %S'
    { time "$@" >"$scratch/out" 2>"$scratch/err"; } 2>"$scratch/time" || { cat "$scratch/err" >&2; return 1; }
    awk '{ print $1 + $2 }' "$scratch/time"
}

# The seconds that pass until all of the commands, one a line of words, are done.
wall() { # COMMAND-WORD... [and COMMAND-WORD...]
    local begin word words=()
    begin=$(date +%s%N)
    for word in "$@" and; do
        if [ "$word" = and ]; then
            "${words[@]}" >/dev/null &
            words=()
        else
            words+=("$word")
        fi
    done
    wait
    echo "$(date +%s%N) $begin" | awk '{ print ($1 - $2) / 1e9 }'
}

# The processor time that all threads of COMMAND take, and the most memory it holds in kB, on one line.
both() { # COMMAND...
    /usr/bin/time -o "$scratch/time" -f '%U %S %M' "$@" >/dev/null 2>&1 && awk '{ print $1 + $2, $3 }' "$scratch/time"
}

forget() { sync && { echo 1 >/proc/sys/vm/drop_caches; } 2>/dev/null; }

least() { sort -g "$scratch/$1" | head -n 1; }
ratio() { awk -v a="$1" -v b="$2" -v f="${3:-%.1f}" 'BEGIN { printf f, a / b }'; }

flow=("$BUILD/stalltrap" decode --stats "${ids[@]}" "$data")
"${flow[@]}" --threads 1 >"$scratch/stats"
"${flow[@]}" --reference >"$scratch/reference"
branches=$(jq '.branches.taken' "$scratch/stats")
bytes=$(jq '.bytes' "$scratch/stats")
[ "${COLD:-yes}" = no ] || ! forget || wall "${flow[@]}" --threads 1 >"$scratch/cold"
for ((i = 0; i < rounds; i++)); do
    cpu "${flow[@]}" --threads 1 >>"$scratch/ours"
    cpu "${flow[@]}" --reference >>"$scratch/slow"
    cpu perf "${ids[@]}" script -i "$data" --itrace=e >>"$scratch/perf"
    "$BUILD/tests/bench/decode_rate" "$data" "${@:2}" >"$scratch/rates"
    sed -n 1p "$scratch/rates" >>"$scratch/libipt"
    sed -n 2p "$scratch/rates" >>"$scratch/walk"
    both "${flow[@]}" --threads 2 >>"$scratch/two_cpu"
    wall "${flow[@]}" --threads 1 >>"$scratch/one"
    wall "${flow[@]}" --threads 2 >>"$scratch/two"
    wall "${flow[@]}" --threads 1 and "${flow[@]}" --threads 1 >>"$scratch/both"
done
ours=$(least ours)
packets=$("$BUILD/stalltrap" decode --dump packets "$data" 2>/dev/null | awk '$2 ~ /^(tsc|tma|mtc|cyc|cbr)$/ { n[$2]++ }
    END { for (name in n) printf "%s%d %s", sep++ ? ", " : "", n[name], name }')
echo "flow_trace $branches taken branches vs $bytes bytes of trace, $(ratio "$bytes" "$branches" %.2f) bytes a branch; $packets: $data"
echo "flow_rate $(ratio "$branches" "$(ratio "$ours" 0.000001 %f)") M branches/s vs nothing: decode --stats, 1 thread, time kept"
same=$(diff <(jq -c 'del(.seconds, .slow)' "$scratch/stats") <(jq -c 'del(.seconds, .slow)' "$scratch/reference") >/dev/null && echo 0 || echo 1)
echo "flow_differs $same counts vs decode --reference, libipt's query decoder (goal: 0)"
echo "flow_reference $(ratio "$(least slow)" "$ours") times faster vs decode --reference"
echo "flow_perf $(ratio "$(least perf)" "$ours") times faster vs perf script --itrace=e (goal: 10)"
instructions=$(jq .instructions "$scratch/stats")
read -r libipt theirs errors < <(least libipt)
each=$(ratio "$libipt" "$theirs" %g) # seconds an instruction
echo "flow_libipt $(ratio "$libipt" "$ours") times faster vs libipt's block decoder with a section cache," \
    "$theirs instructions of $instructions with $errors errors (goal: 10)"
echo "flow_libipt_each $(ratio "$each" "$(ratio "$ours" "$instructions" %g)") times faster an instruction vs the same"
echo "flow_libipt_walk $(ratio "$each" "$(least walk | awk '{ printf "%g", $1 / $2 }')") times faster an instruction vs the same," \
    "both without the program's start and the reading of the file"
[ ! -s "$scratch/cold" ] ||
    echo "flow_cold $(cat "$scratch/cold") s vs $(least one) s with the files in memory, 1 thread, by the clock; 2 threads $(least two) s"
echo "flow_memory $(cut -d' ' -f2 "$scratch/two_cpu" | sort -g | tail -n 1) kB at most vs $((bytes / 1024)) kB of trace, 2 threads"
echo "flow_threads_cpu $(ratio "$ours" "$(least two_cpu | cut -d' ' -f1)" %.2f) of the processor time of 1 thread vs 2 threads together"
echo "flow_threads $(ratio "$(ratio "$(least both)" 2 %f)" "$(least two)" %.2f) of two decodes at once vs 2 threads (goal: 0.9)"
[ "$same" = 0 ]
