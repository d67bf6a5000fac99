#!/bin/bash
# The target does what it does without us, whether arm comes and goes, dies of SIGKILL at any moment, or stays to the end: its
# output, its exit status, its waits, threads, children and signals.
. "$(dirname "$0")/arm_lib.sh"

./arm_target rounds 20 12 >plain.out
is "exit status without us" 9 $?
is "rounds without us" 12 "$(grep -c ': 0 bad waits, 4 threads, child.s status 0x700, ' plain.out)"

# start_rounds MS TIMES: in the background; its pid is in $target, its output goes to target.out
start_rounds() {
    ./arm_target rounds "$1" "$2" >target.out &
    target=$!
    started+=("$target")
}

# same_output TIMES
same_output() {
    head -n "$1" plain.out | diff - target.out >difference || fail "the target did something else: $(cat difference)"
}

# wait_rounds TIMES: it must end as without us
wait_rounds() {
    wait "$target"
    is "exit status of the target" 9 $?
    same_output "$1"
}

ended() {
    ! alive "$target"
}

untraced() {
    [ "$(cat /proc/"$target"/task/*/status 2>/dev/null | grep -c '^TracerPid:[[:space:]]*[1-9]')" = 0 ]
}

run "kill -9 of arm at any moment leaves the target running as before"
start_rounds 20 12
for pause in 0 0.02 0.1 0.3 0.5; do
    arm --no-decode -o killed -p "$target"
    sleep $pause
    kill -KILL "$arm"
    wait "$arm" 2>/dev/null
    wait_for "the stepping helper to let go" untraced
done
alive "$target" || fail "the target did not survive"
wait_rounds 12
is "files of an arm that was killed" "" "$(ls killed.* 2>/dev/null)"
no_leftovers

run "Ctrl-C leaves it running too, SIGTERM as well"
start_rounds 20 12
for signal in INT TERM INT; do
    arm --no-decode -o came -p "$target"
    sleep 0.2
    kill -$signal "$arm"
    wait_arm
    untraced || fail "arm has ended, and something still traces the target"
done
wait_rounds 12

run "armed to its end"
start_rounds 200 2
arm --no-decode -o end -p "$target"
wait_rounds 2
wait_arm
is "exit status of arm" 0 $status
perf_reads end.1.data
no_leftovers

run "a command whose arm is killed goes on"
"$STALLTRAP" arm --source step --no-decode -o cmd -- ./arm_target rounds 20 2 >target.out 2>err &
arm=$!
started+=("$arm")
wait_for "the command's first round" grep -q '^round 0' target.out
target=$(pgrep -P $arm -x arm_target)
started+=("$target")
kill -KILL $arm
wait $arm 2>/dev/null
wait_for "its end" ended
same_output 2

run "a signal that ends it ends it"
start_target idle 5
arm --no-decode -o term -p "$target"
kill -TERM "$target"
wait_arm
is "exit status of arm" 0 $status
wait_for "its end" ended

summary
