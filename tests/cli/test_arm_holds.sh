#!/bin/bash
# Nothing fires within --warm-up, nor within --cooldown after a trap; a snapshot by hand is taken all the same, and what was held back is
# counted. And state= tells apart: what sleeps is nothing to a trigger that asks for another state. A reader is let wait for longer than the
# threshold as often as is needed.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }

asleep() { [ "$(cut -d' ' -f1 "/proc/$reader/syscall" 2>/dev/null)" = 0 ]; }

stall() { # waits for no less than 20 ms in read; more does no harm
    wait_for 300 asleep || fail "the reader does not read"
    sleep 0.02
    echo >&8
}

begin() { # OPTION...
    rm -rf x.* go
    mkfifo go
    exec 8<>go
    start bash -c 'while read -r _; do :; done <go'
    reader=$pid
    start_arm --source sample --no-decode -p "$reader" -o x "$@"
}

# After a trap there is none for an hour, however many stalls there are.
begin --snapshots 2 --cooldown 1h --on 'syscall:read>10ms'
stall
wait_for 300 grep -qs '^wrote x.1.data' arm.out || fail "no first trap" arm.out arm.err
for n in 1 2 3; do stall; done
wait_for 300 asleep
kill -INT "$arm"
end_of "$arm" 300 arm
[ "$(lines '^trap ' arm.out)" = 1 ] || fail "a trap within --cooldown" arm.out arm.err
grep -q 'reached .* threshold while nothing could fire' arm.err || fail "what --cooldown held back is not counted" arm.err
kill -KILL "$reader"

# Nor is there one within an hour of arming.
begin --warm-up 1h --on 'syscall:read>10ms'
for n in 1 2 3; do stall; done
wait_for 300 asleep
kill -INT "$arm"
end_of "$arm" 300 arm
[ "$(lines '^trap ' arm.out)" = 0 ] || fail "a trap within --warm-up" arm.out arm.err
grep -q 'reached .* threshold while nothing could fire' arm.err || fail "what --warm-up held back is not counted" arm.err
kill -KILL "$reader"

# Two triggers, one of each state; the reader sleeps. Whatever the machine does to it besides, no record of one is of the other's state. A
# page that comes from the disk may fire first, and end it: that run says nothing.
for try in 1 2 3 4 5 6; do
    begin --on 'offcpu>10ms,state=blocked' --on 'offcpu>10ms,state=sleeping' --after 100ms
    for n in 1 2 3; do stall; done
    end_of "$arm" 300 arm
    [ "$status" = 0 ] || fail "arm ends with $status" arm.out arm.err
    kill -KILL "$reader"
    "$STALLTRAP" decode x.1.data -o x.db >out 2>err || fail "decode" err
    sql x.db "SELECT trigger, state, count(*) FROM stalls GROUP BY 1, 2" >states
    cat states
    grep 'state=sleeping' states | grep -v ',sleeping,' && fail "state=sleeping tells of another state" states
    grep 'state=blocked' states | grep -v ',blocked,' && fail "state=blocked tells of another state" states
    grep -q 'state=sleeping.*,sleeping,' states && exit 0
done
fail "no wait was told in six runs" states
