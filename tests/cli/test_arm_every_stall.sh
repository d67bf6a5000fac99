#!/bin/bash
# Of the stalls of a recording each has fired, or is counted as one that could not; and each is a row in one of the databases. The
# program counts them itself: calls of clock_nanosleep, which it makes for nothing else. Needs root: BPF programs are loaded.
set -u
. "$SOURCE/tests/cli/lib.sh"

cat >stall.py <<'PY'
import sys, time
for line in open(sys.argv[1]):
    for _ in range(int(line)):
        time.sleep(0.03)
    print(int(line), flush=True)
PY
mkfifo orders
exec 5<>orders
start python3 stall.py orders >done
target=$pid

# stalls N: and waits until they are over
stalls() {
    echo "$1" >&5
    made=$((made + $1))
    orders=$((orders + 1))
    wait_for 60 at_least $orders '^[0-9]' done || fail "the target does not stall"
}

# check NAME FIRED OPTION...: 1 stall, 12 more, one more when the pause is over
check() {
    local name=$1
    shift
    made=0 orders=0
    : >done
    start_arm --source sample -p "$target" --on 'syscall:clock_nanosleep>20ms' --snapshots 0 -o "$name" "$@"
    stalls 1
    stalls 12
    sleep 1.5
    stalls 1
    wait_for 60 at_least 2 '^trap ' arm.out || fail "$name: it does not fire again" arm.out arm.err
    kill -INT "$arm"
    end_of "$arm" 60 arm
    fired=$(lines '^trap ' arm.out)
    without=$(sed -n 's/^\([0-9]*\) stalls\? reached .* threshold while nothing could fire.*/\1/p' arm.err)
    echo "$name: $made stalls, $fired fired, ${without:-0} without a snapshot"
    [ "$((fired + ${without:-0}))" -eq $made ] || fail "$name: $made stalls, but $fired and ${without:-0}" arm.out arm.err
    [ "$(for db in "$name".*.db; do sql "$db" 'SELECT start_ns + (SELECT value FROM meta WHERE key = "origin_perf_ns") FROM stall'; done |
        sort -u | wc -l)" -eq $made ] || fail "$name: the databases have other stalls"
}

check cooldown --cooldown 1s
[ "$fired" -eq 2 ] || fail "$fired fired within two pauses" arm.out
check slow --cooldown 0 --then snapshot --then 'sleep 1'

# What does not fire at all says so too.
made=0 orders=0
: >done
start_arm --source sample -p "$target" --on 'syscall:clock_nanosleep>20ms' --warm-up 1h --snapshots 0 -o never
stalls 5
kill -TERM "$arm"
end_of "$arm" 60 arm
grep -q '^5 stalls reached their threshold while nothing could fire' arm.err || fail "stalls in the warm-up are not counted" arm.out arm.err
