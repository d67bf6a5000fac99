#!/bin/bash
# A thread that is born while it is recorded is recorded from then on, whether the recorder has heard of it yet or not: it is stopped here
# while four threads are born, wait, are woken and end. Each has its wait and who woke it in the trace, and nobody tells more than the
# recorder had.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: wake-ups need root"; exit 77; }

# Other programs' newborn threads fill the ring of wake-ups too, and numbers begin anew some day.
judged() {
    [ "$(sql born.1.db "SELECT count(*) FROM gaps WHERE detail LIKE '%wake-ups%'")" = 0 ] && awk -v from=$pid '$1 <= from {exit 1}' tids
}

record() { # OPTION...
    rm -f born.1.* go
    mkfifo go
    start bash -c 'exec "$1" <go >out' _ "$programs/born_waits"
    exec 8>go
    local main=$pid
    start_arm --source sample --no-decode -o born -p $main "$@"
    pid=$main
    kill -STOP "$arm"
    echo -n x >&8
    wait_for 600 grep -qs '^done$' out || fail "the threads have not ended" out
    kill -CONT "$arm"
    kill -INT "$arm"
    end_of "$arm" 300 arm
    [ "$status" -eq 0 ] || fail "arm ends with $status" arm.out arm.err
    exec 8>&-
    "$STALLTRAP" decode born.1.data -o born.1.db >decode.out 2>decode.err || fail "decode ends with $?" decode.err
    grep -v done out >tids
}

wakers() { # of each thread: how often, by whom
    while read -r tid; do
        sql born.1.db "SELECT '$tid', count(*), min(detail) FROM mark m JOIN thread t ON t.id = thread_id WHERE tid = $tid AND m.name = 'woken' AND detail LIKE 'by thread % in write'"
    done <tids
}

for try in 1 2 3 4 5 6; do
    record --rings cpu
    ! grep -q ', no wake-ups (' arm.err || { echo "skipped: $(grep -o 'no wake-ups ([^)]*)' arm.err)"; exit 77; }
    judged && break
    [ "$try" -lt 6 ] || { echo "skipped: wake-ups of other programs filled the ring six times"; exit 77; }
done
wakers >woken
cat woken
[ "$(grep -c ",1,.*by thread $pid " woken)" -eq 4 ] || fail "a wake-up of a newborn thread is missing, or is another's" woken arm.err
# So is where it waited, by the chain of the switch: the C library's read hides its caller, the kernel's does not.
waited=$(sql born.1.db "SELECT count(DISTINCT t.tid) FROM offcpu o JOIN thread t ON t.id = o.thread_id JOIN calls c ON c.thread_id = t.id
    WHERE NOT preempted AND t.tid <> $pid AND c.kernel AND c.function LIKE '%_read' AND c.start_ns <= o.start_ns AND c.end_ns >= o.end_ns")
[ "$waited" -eq 4 ] || fail "$waited of four newborn threads waited in a read" woken
