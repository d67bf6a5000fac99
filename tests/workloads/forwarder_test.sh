#!/bin/sh
# Runs the forwarder with one kind of stall under its own load and checks the log and the data.
# usage: forwarder_test.sh FORWARDER KIND:MS [OPTION...]
set -u
forwarder=${1:?usage: forwarder_test.sh FORWARDER KIND:MS [OPTION...]}
stall=${2:?KIND:MS is missing}
shift 2
kind=${stall%%:*} ms=${stall##*:} count=3
work=$(mktemp -d) || exit 1
pid=
cleanup() {
    [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
fail() {
    echo "FAIL $kind: $*"
    cat "$work/log" "$work/err"
    exit 1
}

: >"$work/log"
"$forwarder" --listen 127.0.0.1:0 --self-load --wait-usr1 --stall "$stall:20" --stall-count $count \
    --log "$work/log" "$@" 2>"$work/err" &
pid=$!
# Waits up to 10 s for COUNT lines that match.
wait_lines() {
    for _ in $(seq 200); do
        [ "$(grep -c "$1" "$work/log" 2>/dev/null)" -ge "$2" ] && return 0
        kill -0 $pid 2>/dev/null || fail "the forwarder has ended"
        sleep 0.05
    done
    fail "no line '$1' ($2 times) within 10 s"
}
wait_lines '^ready ' 1
wait_lines '^open ' 4
sleep 0.1
grep -q '^stall ' "$work/log" && fail "stalled before SIGUSR1"
kill -USR1 $pid
wait_lines '^stall ' $count
# Time for a stall too many to show.
sleep 0.1
kill -TERM $pid
wait $pid
status=$?
pid=
[ $status -eq 0 ] || fail "exit status $status"

[ "$(grep -c "^stall .*kind=$kind ms=$ms " "$work/log")" -eq $count ] || fail "not exactly $count stalls"
grep -q "^load streams=4 bytes=[1-9][0-9]* whole=4$" "$work/log" || fail "the data did not come whole"
grep -q "^end stalls=$count sessions=4 bytes=[1-9][0-9]* load=good$" "$work/log" || fail "the end line is wrong"

# A stall may be longer than asked for on a busy machine, never much shorter. What a disk takes is the disk's: it was about MS when it
# was measured, and others may use it too. There only the log is checked; --fsync-via fuse has the figures.
least=$((ms * 95 / 100)) most=$((ms * 5 + 200))
if grep -q '^fsync via=disk ' "$work/log"; then
    least=0 most=60000
fi
awk -v least=$least -v most=$most -v kind="$kind" '
/^stall / {
    for (i = 1; i <= NF; i++) { split($i, pair, "="); value[pair[1]] = pair[2] }
    if (kind == "forever") { bad += value["end_ns"] != "-"; next }
    took = (value["end_ns"] - value["start_ns"]) / 1e6
    if (took < least || took > most || value["start_ns"] < last || / failed/) { print "bad: " $0; bad++ }
    last = value["end_ns"]
}
END { exit bad > 0 }' "$work/log" || fail "a stall is not as ordered"
echo "PASS $kind: $(sed -n 's/^stall .*duration_ns=//p' "$work/log" | tr '\n' ' ')ns"
