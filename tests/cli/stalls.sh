#!/bin/bash
# The forwarder stalls ten times under load while it is armed with offcpu>20ms: each stall fires once, nothing else does, and the
# report names the cause. What is no stall does not fire; what never ends fires in time.
# usage: stalls.sh lock|fsync|fsync_fuse|slowsend|nagle|busy|idle|forever
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@" # other work that keeps a thread from its CPU for 20 ms makes a stall too, but not one of the forwarder's log
kind=$1
check=() at_once=()
count=10 ms=40 every=100 options=()
case $kind in
fsync) # the disk decides how long; one that others use too may wake the thread in between
    ms=60
    check=(--may-split)
    ;;
fsync_fuse) kind=fsync options=(--fsync-via fuse) ;;
idle) count=3 ms=1000 ;;
forever) # one thread a stall, each so long after the one before
    count=5 ms=0 every=3000
    at_once=(--until-end 0)
    ;;
esac
start_control
start_forwarder --stall "$kind:$ms:$every" --stall-count $count --load-connections 2 --load-rate 1000000 "${options[@]}"
# The threads that wait for the signal all wake at once and meet at a lock: not while they are stepped.
[ $kind != forever ] || kill -USR1 $forwarder
start_arm --source step -p $forwarder --on 'offcpu>20ms' --snapshots 0 --no-decode --ring 16M "${at_once[@]}" -o x
if [ $kind = forever ]; then
    [ "$(lines '^stall ' forwarder.log)" = 0 ] || fail "too slow to be armed before the first stall"
else
    kill -USR1 $forwarder
fi
wait_for 120 at_least $count "^stall .*kind=$kind " forwarder.log || fail "the forwarder has not stalled $count times" forwarder.log arm.err
sleep 0.5 # for the last trap, and for one too many
kill -INT $arm # one more snapshot, which has them all
end_of $arm 60 arm
[ $status -eq 0 ] || fail "arm ends with $status on Ctrl-C" arm.out arm.err
kill -TERM $forwarder
end_of $forwarder 60 "the forwarder"
[ $status -eq 0 ] && grep -q '^end .* load=good$' forwarder.log || fail "the forwarder ends with $status" forwarder.log

traps=$(grep -c '^trap [0-9]*: ' arm.out)
preempted=$(grep -c '^trap .*preempted' arm.out)
[ "$preempted" = 0 ] || echo "$preempted traps because others had the CPU"
last=$((traps + 1))
for ((i = 1; i <= last; i++)); do
    [ -s x.$i.data ] || fail "no x.$i.data" arm.out arm.err
done
case $kind in
busy | idle)
    [ $traps -eq "$preempted" ] || fail "$kind fires" arm.out
    exit 0
    ;;
esac

"$STALLTRAP" decode x.$last.data -o x.db >/dev/null || fail "decode ends with $?"
python3 "$SOURCE/tests/cli/check_stalls.py" "${check[@]}" x.db forwarder.log ||
    fail_by_time 2000000 "the stalls are not those of the log" arm.out forwarder.log # its TOLERANCE_NS
stalls=$(sql x.db "SELECT count(*) FROM stalls WHERE state <> 'runnable'")
# One that reached its threshold while the snapshot before it was written does not fire, and is told.
held=$(sed -n 's/^\([0-9]*\) stalls\? reached .* threshold while nothing could fire.*/\1/p' arm.err)
[ $((traps - preempted)) -le "$stalls" ] && [ $((traps - preempted + ${held:-0})) -ge "$stalls" ] ||
    fail "$((traps - preempted)) traps for $stalls stalls, ${held:-0} held back" arm.out arm.err
if [ $kind = forever ]; then
    # The timer that tells is a softirq's work, and a machine with more to do than CPUs may be late with it now and then.
    awk '/^trap .* so far / { n++; sub(/.*off-CPU /, ""); late += $1 > 70; if ($2 != "ms" || $1 > 300) bad = 1 }
         END { exit n != '$count' || late > 1 || bad }' arm.out ||
        fail_by_time 50000000 "not within the threshold and 50 ms, or not told as going on" arm.out
fi

# report_names [-w CONDITION] PATTERN...: the report of each stall (that is so) has a line for each
report_names() {
    local stall pattern which=1
    [ "$1" != -w ] || { which=$2 && shift 2; }
    for stall in $(sql x.db "SELECT id FROM stall WHERE state <> 'runnable' AND $which"); do
        "$STALLTRAP" report x.db why --stall "$stall" >report 2>report.err || fail "report ends with $?" report.err
        for pattern; do
            grep -q -- "$pattern" report || fail "the report of stall $stall does not say '$pattern'" report
        done
    done
}
case $kind in
lock) report_names '^  woken by  thread [0-9]* "lock-holder"$' '^  waker in  .*< hold_lock <' '^  cause  *lock contention: .* in hold_lock()' \
    '^  in  .* < wait_for_lock < run_lock < run_stall <' ;;
fsync) report_names '^  where  *system call fsync' '^  cause  *disk write (fsync)' '^  in  .*sync_big_file < timed_fsync <.* run_fsync <' ;;
slowsend)
    report_names '^  where  *system call sendto' '^  cause  *slow downstream: ' '^  in  .*send_downstream < run_slowsend <'
    # The ACK that makes room may happen to be a delayed one: the cause is the reader all the same.
    python3 -c 'import sqlite3; db = sqlite3.connect("x.db"); db.execute("UPDATE stall SET timer = '"'tcp_delack_timer'"'"); db.commit()'
    report_names 'tcp_delack_timer' '^  cause  *slow downstream: '
    ;;
nagle)
    # The kernels of some virtual machines leave out switches and the wake-ups before them: the record says so.
    unknown=$(sql x.db "SELECT count(*) FROM stall s WHERE state <> 'runnable' AND timer IS NULL AND NOT EXISTS
        (SELECT 1 FROM stall_attr WHERE stall_id = s.id AND key = 'untraced')")
    [ "$unknown" = 0 ] || fail_by_time 2000000 "$unknown records have no chain"
    report_names -w "timer IS NOT NULL" '^  where  *system call recvfrom' 'tcp_delack_timer' '^  cause  *delayed ACK against Nagle: ' \
        '^  in  .*receive_both < run_nagle <'
    ;;
forever) report_names 'still going on' '^  where  *system call read' '^  woken by  nobody yet' '^  in  .*block_forever' ;;
esac
