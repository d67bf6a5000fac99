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

# How many fired, and how many did not, as arm says.
told() {
    fired=$(lines '^trap ' arm.out)
    without=$(sed -n 's/^\([0-9]*\) stalls\? reached .* threshold while nothing could fire.*/\1/p' arm.err)
}

# counted SERIES: its value at the end of the recording
counted() {
    sed -n "s/^stalltrap_$1_total //p" metrics
}

# sums NAME MORE: what the metrics say is what was printed, and nothing that fired is lost. MORE snapshots are of no trap.
sums() {
    [ "$(counted traps)" -eq "$fired" ] && [ "$(counted stalls_without_trap)" -eq "${without:-0}" ] &&
        [ "$(counted traps)" -eq $(($(counted trap_snapshots) + $(counted traps_dropped))) ] &&
        [ $(($(counted trap_snapshots) + $2)) -eq "$(ls "$1".*.data 2>/dev/null | wc -l)" ] || fail "$1: the metrics are others" metrics arm.out arm.err
}

# check NAME FIRED OPTION...: 1 stall, 12 more, one more when the pause is over
check() {
    local name=$1
    shift
    made=0 orders=0
    : >done
    start_arm --source sample -p "$target" --on 'syscall:clock_nanosleep>20ms' --snapshots 0 -o "$name" --prometheus ./metrics "$@"
    stalls 1
    stalls 12
    sleep 1.5
    stalls 1
    wait_for 60 at_least 2 '^trap ' arm.out || fail "$name: it does not fire again" arm.out arm.err
    kill -INT "$arm"
    end_of "$arm" 60 arm
    told
    echo "$name: $made stalls, $fired fired, ${without:-0} without a snapshot"
    [ "$((fired + ${without:-0}))" -eq $made ] || fail "$name: $made stalls, but $fired and ${without:-0}" arm.out arm.err
    sums "$name" 1
    [ "$(for db in "$name".*.db; do sql "$db" 'SELECT start_ns + (SELECT value FROM meta WHERE key = "origin_perf_ns") FROM stall'; done |
        sort -u | wc -l)" -eq $made ] || fail "$name: the databases have other stalls"
}

check cooldown --cooldown 1s
[ "$fired" -eq 2 ] || fail "$fired fired within two pauses" arm.out
check slow --cooldown 0 --then snapshot --then 'sleep 1'

# Where no snapshot can be written each of them is counted.
made=0 orders=0
: >done
ulimit -S -f 12
start_arm --source sample -p "$target" --on 'syscall:clock_nanosleep>20ms' --snapshots 0 --cooldown 0 -o full --prometheus ./metrics
ulimit -S -f unlimited
stalls 4
wait_for 60 at_least 1 '^stalltrap arm: ' arm.err || fail "that no snapshot can be written is not told" arm.out arm.err
kill -INT "$arm"
end_of "$arm" 60 arm
told
[ "$((fired + ${without:-0}))" -eq 4 ] || fail "4 stalls, but $fired and ${without:-0}" arm.out arm.err
sums full 0
[ "$(counted traps_dropped)" -eq "$fired" ] || fail "$fired fired, $(counted traps_dropped) dropped" metrics
grep -q "^of $fired traps $fired ha" arm.err || fail "it is not told how many have no snapshot" arm.err

# What does not fire at all says so too.
made=0 orders=0
: >done
start_arm --source sample -p "$target" --on 'syscall:clock_nanosleep>20ms' --warm-up 1h --snapshots 0 -o never
stalls 5
kill -TERM "$arm"
end_of "$arm" 60 arm
grep -q '^5 stalls reached their threshold while nothing could fire' arm.err || fail "stalls in the warm-up are not counted" arm.out arm.err
