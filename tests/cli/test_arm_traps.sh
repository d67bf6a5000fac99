#!/bin/bash
# arm with triggers: traps, --snapshots, --cooldown, --after, --warm-up. Needs root: BPF programs are loaded.
. "$(dirname "$0")/arm_lib.sh"

# Preempted threads are stalled too; on a busy machine that would come in between.
stall='offcpu>20ms,state=sleeping'
long='offcpu>100ms,state=sleeping'

calls_of() {
    perf script --itrace=cr -i "$1" 2>/dev/null | grep -c "=> .* $2+0x0 "
}

run "a stall fires by itself, once, and is told"
start_target block 40 1000
arm --no-decode -o trap -p "$target" --on "$stall" --warm-up 500ms # not for the stall in the midst of which we came
wait_arm
is "exit status" 0 $status
is "trap lines" 1 "$(grep -Ec '^trap 1: thread [0-9]* "arm_target" off-CPU .* ms (so far )?in read' out)"
has "result" '^wrote trap\.1\.data$' out
has "armed line" "waiting for $stall \\(Ctrl-C: snapshot now\\)" err
has "histogram" "$stall" err
perf_reads trap.1.data
perf_events trap.1.data 5
[ "$(calls_of trap.1.data target_block)" -ge 1 ] || fail "the call that stalled is not in the trace"
alive "$target" || fail "the target did not survive"
no_leftovers

run "--snapshots 3: three traps, three files, and the actions know why"
arm --no-decode -o three -p "$target" --on "$stall" --snapshots 3 --then 'echo "$STALLTRAP_REASON" >>reasons'
wait_arm
is "exit status" 0 $status
is "trap lines" 3 "$(grep -c '^trap [123]: ' out)"
is "files" 3 "$(find . -name 'three.*.data' | wc -l)"
is "reasons" 3 "$(grep -c "^$stall\$" reasons)"

run "--then: in order, signals too, and the snapshot where it stands among them"
sh -c 'trap "echo signal >>order" USR1; while :; do sleep 0.05; done' &
catcher=$!
started+=("$catcher")
arm --no-decode -o order -p "$target" --on "$stall" --then 'test ! -e order.1.data && echo before >>order' --then "signal:USR1:$catcher" \
    --then 'shell:sleep 0.5' --then snapshot --then 'test "$STALLTRAP_DATA" = "$PWD/order.1.data" && echo after >>order' \
    --at-end 'echo end >>order' --at-end false --at-end 'echo never >>order'
wait_arm
is "exit status" 0 $status
is "order" "before signal after end" "$(tr '\n' ' ' <order | sed 's/ $//')"
has "the action that failed" "--at-end 'false' failed: exit status 1; the actions behind it do not run" err
perf_reads order.1.data
kill -KILL "$catcher"

run "--then: an action that fails before the snapshot drops it"
arm --no-decode -o drop -p "$target" --on "$stall" --then 'echo try >>tries; test "$(wc -l <tries)" -ge 3' --then snapshot --timeout 60s
wait_arm
is "exit status" 0 $status
is "tries" 3 "$(wc -l <tries)"
is "files" "drop.1.data" "$(ls drop.*)"
has "all traps were told" '^trap 3: ' out

run "--at-end: a snapshot when nothing fired, and signals to nobody fail"
arm --no-decode -o atend -p "$target" --on 'offcpu>10s' --timeout 500ms --at-end snapshot --at-end 'echo "$STALLTRAP_DATA" >last' --at-end signal:USR1:4194303 \
    --at-end 'echo never >>last'
wait_arm
is "exit status" 0 $status
is "the last snapshot" "$PWD/atend.1.data" "$(cat last)"
has "nobody" "--at-end 'signal:USR1:4194303' failed: No such process" err
arm --no-decode -o term -p "$target" --on 'offcpu>10s' --at-end snapshot --at-end 'echo never >term'
kill -TERM "$arm"
wait_arm
is "files after SIGTERM" "" "$(ls term* 2>/dev/null)"
arm --no-decode -o ctrlc -p "$target" --on 'offcpu>10s' --at-end snapshot
kill -INT "$arm"
wait_arm
is "one snapshot, of Ctrl-C" "ctrlc.1.data" "$(ls ctrlc.*)"
"$STALLTRAP" arm -p "$target" --on "$stall" --then snapshot --then snapshot >out 2>err
is "two snapshots in a list" 2 $?

run "--cooldown keeps quiet after a trap"
begin=$(date +%s%N)
arm --no-decode -o cool -p "$target" --on "$stall" --snapshots 2 --cooldown 1500ms
wait_arm
is "exit status" 0 $status
[ $((($(date +%s%N) - begin) / 1000000)) -gt 1500 ] || fail "the second trap came within the cooldown"

run "--warm-up: nothing fires so early"
begin=$(date +%s%N)
arm --no-decode -o warm -p "$target" --on "$stall" --warm-up 1s
wait_arm
is "exit status" 0 $status
[ $((($(date +%s%N) - begin) / 1000000)) -gt 1000 ] || fail "it fired during the warm-up"

run "--after: what comes after the trigger is in the trace too"
arm --no-decode -o after -p "$target" --on "$stall" --after 1500ms
wait_arm
is "exit status" 0 $status
# Every call of it stalls: without --after the trace would hold one at most.
[ "$(calls_of after.1.data target_block)" -ge 2 ] || fail "nothing of what came after the trigger"

run "a trap ends with --snapshots 1, Ctrl-C before it counts as well"
arm --no-decode -o early -p "$target" --on 'offcpu>10s'
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
has "result" '^wrote early\.1\.data$' out
lacks "no trap" '^trap' out

run "a target that ends untriggered"
arm --no-decode -o none -p "$target" --on 'offcpu>10s'
kill -KILL "$target"
wait_arm
is "exit status" 4 $status
has "message" 'the target ended and nothing fired' err
is "files" "" "$(ls none.* 2>/dev/null)"

run "idle waits are no stall"
start_target idle 60
arm --no-decode -o idle -p "$target" --on "$stall" --timeout 1s
wait_arm
is "exit status" 4 $status
kill "$target"

run "a thread that hangs for ever fires while it hangs"
start_target hang
arm --no-decode -o hang --on "$long" --timeout 100s -- ./arm_target hang
wait_arm
is "exit status" 0 $status
has "trap line" '^trap 1: thread .* in (read|recv)' out

run "of two triggers the one that fires is named"
arm --no-decode -o either --on 'offcpu>30s' --on "$long" --timeout 100s --then 'echo "$STALLTRAP_REASON" >either.reason' -- ./arm_target hang
wait_arm
is "exit status" 0 $status
is "reason" "$long" "$(cat either.reason)"

summary
