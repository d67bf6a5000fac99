#!/bin/bash
# A thread that does nothing but wait for another, some hundred thousand times a second: samples of all its context switches would cost more
# than recording may. Fewer are taken, and whoever reads the trace is told; the switches themselves are all there.
set -u
. "$SOURCE/tests/cli/lib.sh"

cat >turns.py <<'EOF'
import os
a, b, c, d = *os.pipe(), *os.pipe()
if os.fork() == 0:
    while True:
        os.write(d, os.read(a, 1))
while True:
    os.write(b, b"x")
    os.read(c, 1)
EOF
setsid python3 turns.py &
turns=$!
trap 'kill -- -$turns; cleanup' EXIT

record() { # NAME PATTERN OPTION...: until it has said that, and for a while longer
    local name=$1 pattern=$2
    shift 2
    start "$STALLTRAP" arm --source sample --ring 16M -p $turns -o "$name" "$@" >"$name.out" 2>"$name.err"
    wait_for 120 grep -q "$pattern" "$name.err" || fail "not said: $pattern" "$name.err"
    local from
    from=$(awk '/^voluntary/ { print $2 }' "/proc/$turns/status")
    wait_for 120 awk -v from="$from" '/^voluntary/ { exit $2 < from + 5000 }' "/proc/$turns/status" || fail "the program stands still"
    kill -INT $pid
    wait $pid || fail "arm ends with $?" "$name.err"
}

record some 'one context switch in [0-9]'
sql some.1.db "SELECT count(*), sum(call_id IS NOT NULL), (SELECT value FROM meta WHERE key = 'switch_samples') FROM offcpu" >counts
IFS=, read -r away placed sampled <counts
echo "$away waits, $sampled of them sampled, $placed with a place"
[ "$away" -gt 5000 ] && [ "$sampled" -gt 0 ] && [ "$sampled" -lt $((away * 3 / 4)) ] || fail "not a part of the switches was sampled" counts
[ "$(sql some.1.db "SELECT count(*) FROM gaps WHERE reason = 'left out' AND thread_id IS NULL AND detail LIKE '%one in % context switches%'")" = 1 ] ||
    fail "what is left out is no gap" some.err
"$STALLTRAP" report some.1.db gaps | grep -q 'left out' || fail "the report does not tell"

record all '^armed: ' --every-switch
sql all.1.db "SELECT count(*), sum(call_id IS NULL), (SELECT count(*) FROM gaps WHERE reason = 'left out') FROM offcpu WHERE
    start_ns BETWEEN (SELECT value FROM meta WHERE key = 'armed_ns') AND (SELECT value FROM meta WHERE key = 'freeze_asked_ns') - 1000000 AND thread_id IN (SELECT id FROM thread WHERE tid = $turns)" >counts
IFS=, read -r away placeless gaps <counts
echo "$away waits with --every-switch, $placeless of them without a place"
[ "$away" -gt 1000 ] && [ "$placeless" -eq 0 ] && [ "$gaps" -eq 0 ] || fail "--every-switch does not sample each" counts
