#!/bin/bash
# The viewer on a made trace: time to the first frame, from each key to its frame, memory. CALLS (5000000; the goals are for
# 50000000 too), THREADS (64), TRACE (a database of that size that is there already). One line a figure: NAME VALUE UNIT vs WHAT.
# Exit 1 when a goal is missed.
set -eu
BUILD=$(realpath "${BUILD:-build}")
calls=${CALLS:-5000000} threads=${THREADS:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trace=${TRACE:-$work/trace.db}
keys='0wwwwddaa<Enter>LLLLuuhhllssss0<Tab><Tab>wwwwwwwwwwwwwwwwddddaaaassssssss0/flush_page<Enter>nnnnNN<Esc>gwwwwGt]][['
keys+='<Space><Tab><Space><S-Tab><Space>KwwwwK0<PgDn><PgDn><PgUp>ma0wwwdd'"'a"'jjjjjkkkLLLLLL<Enter>llllhhhh<Esc>ssssssssssssssss'
keys+='SxeFcH<Esc>i<Click:40,8><WheelUp:40,8><WheelDown:20,8><Drag:10,2>pCCfM'
missed=0

[ -e "$trace" ] || "$BUILD/tests/bench/make_trace" "$trace" "$calls" "$threads"

figure() { # NAME VALUE UNIT GOAL
    echo "$1 $2 $3 vs $calls calls of $threads threads (goal: $4)"
    awk "BEGIN { exit !($2 > $4) }" || return 0
    missed=1
}
percentile() { # FILE COLUMN PERCENT: of the frames behind the first, in ms
    tail -n +2 "$1" | cut -d' ' -f"$2" | sort -n | awk -v p="$3" '{a[NR] = $1} END {printf "%.2f", a[int(NR * p / 100 + 0.5)] / 1e6}'
}

# Of each frame the median of the rounds: this machine does other things too, and a frame that is slow is so in all of them. What the first
# round shows, with all that is not yet in the page cache, is a line of its own.
medians() { # FILE...
    paste -d' ' "$@" | awk -v n=$# '
        function middle(first,    i, k, v, t) {
            for (i = 0; i < n; i++) v[i] = $(3 * i + first) + 0
            for (i = 1; i < n; i++) for (k = i; k > 0 && v[k - 1] > v[k]; k--) { t = v[k]; v[k] = v[k - 1]; v[k - 1] = t }
            return v[int(n / 2)]
        }
        { printf "%d %d %s\n", middle(1), middle(2), $3 }'
}

first=
[ "$(id -u)" != 0 ] || first="nice -n -15"
for size in 80x24 200x60; do
    frames=()
    for round in 1 2 3 4 5; do
        frames+=("$work/frames.$round")
        $first /usr/bin/time -o "$work/time.txt" -f %M "$BUILD/stalltrap" view "$trace" --size $size --keys "$keys" --frames "$work/frames.$round" >/dev/null
    done
    medians "${frames[@]}" >"$work/median"
    figure viewer_first_$size "$(awk 'NR == 1 {printf "%.1f", $1 / 1e6}' "$work/frames.1")" ms 1000
    figure viewer_frame_p50_$size "$(percentile "$work/median" 1 50)" ms 16
    figure viewer_frame_p99_$size "$(percentile "$work/median" 1 99)" ms 16
    figure viewer_cpu_p99_$size "$(percentile "$work/median" 2 99)" ms 16
    echo "viewer_frame_p99_once_$size $(percentile "$work/frames.1" 1 99) ms vs the same in the first round alone"
    figure viewer_memory_$size "$(awk '{printf "%.1f", $1 / 1024}' "$work/time.txt")" MiB 200
done
exit $missed
