#!/bin/bash
# A thread that switches so often that few of its switches are sampled: in what it waited is told all the same, of each wait that lasted, and
# where it was stopped that, and by whom.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF needs root"; exit 77; }

start python3 "$SOURCE/tests/cli/pingpong.py" naps
target=$pid
start_arm --source sample -o t -p "$target" --on 'offcpu>300ms,idle=yes,state=sleeping' --warm-up 1500ms --snapshots 1
end_of "$arm" 300 arm
[ "$status" -eq 0 ] || fail "arm ends with $status" arm.out arm.err
grep -q 'one context switch in [0-9]' arm.err || fail "every switch was sampled: nothing is tried here" arm.err
waits="offcpu o JOIN thread t ON t.id = o.thread_id WHERE t.tid = $target AND NOT o.preempted AND o.end_ns - o.start_ns > 2500000 AND
    o.start_ns > (SELECT min(c.start_ns) FROM call c WHERE c.thread_id = o.thread_id)" # not one that it was in as it began to be watched
# A mark is of the run before its wait: how long before, a machine that stands still decides.
before="coalesce((SELECT max(p.end_ns) FROM offcpu p WHERE p.thread_id = o.thread_id AND p.end_ns <= o.start_ns), 0)"
marked="EXISTS (SELECT 1 FROM mark m WHERE m.thread_id = o.thread_id AND m.name = 'offcpu' AND m.time_ns BETWEEN $before AND o.start_ns"
all=$(sql t.1.db "SELECT count(*) FROM $waits")
told=$(sql t.1.db "SELECT count(*) FROM $waits AND $marked AND m.detail LIKE 'sleeping in %')")
naps=$(sql t.1.db "SELECT count(*) FROM $waits AND $marked AND m.detail = 'sleeping in clock_nanosleep')")
echo "$all waits of the target, of $told is told in what, $naps are naps"
[ "$all" -ge 30 ] && [ "$told" -eq "$all" ] && [ "$naps" -gt 0 ] || fail "waits without a word" arm.err

start_arm --source sample -o s -p "$target" --on 'busy>200ms,idle=none' --warm-up 1500ms --snapshots 1
for _ in $(seq 300); do
    kill -STOP "$target"
    sleep 0.4
    kill -CONT "$target"
    running "$arm" || break
    sleep 0.2
done
end_of "$arm" 300 arm
[ "$status" -eq 0 ] || fail "arm ends with $status" arm.out arm.err
"$STALLTRAP" report s.1.db >report || fail "report ends with $?" report
grep -q 'waiting (stopped), \|waiting (stopped); ' report || fail "the stop is not told" report
exit 0
