#!/bin/bash
# watch: the histogram of what a trigger measures. Needs root: BPF programs are loaded.
. "$(dirname "$0")/arm_lib.sh"

run "a histogram at the end, nothing recorded, nothing fired"
start_target block 40 1000
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --timeout 1s >out 2>err
is "exit status" 0 $?
has "what was measured" 'offcpu>1ms: .* [1-9][0-9]* measured' out
has "a bucket" '\.\. .* ms +[1-9][0-9]* \|@+' out
is "files" "" "$(ls stalltrap.* 2>/dev/null)"
alive "$target" || fail "the target did not survive"

run "SIGTERM ends it"
: >err
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' >out 2>err &
watch=$!
wait_for "it to begin" grep -q '^watching' err
sleep 0.3
kill -TERM "$watch"
wait "$watch"
is "exit status" 0 $?
has "what was measured" 'offcpu>1ms' out

run "--interval prints it anew"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --interval 200ms --timeout 1s >out 2>err
[ "$(grep -c 'offcpu>1ms' out)" -ge 4 ] || fail "fewer than 4 histograms in 1 s"
lacks "escape sequences in a file" "$(printf '\033')" out

run "it ends with its target"
: >err
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' >out 2>err &
watch=$!
wait_for "it to begin" grep -q '^watching' err
kill -KILL "$target"
wait "$watch"
is "exit status" 0 $?

run "a command"
"$STALLTRAP" watch --on 'offcpu>1ms' -- ./arm_target end 20 5 >out 2>err
is "exit status" 0 $?
"$STALLTRAP" watch --on 'offcpu>1ms' -- ./no-such-program >out 2>err
is "exit status" 1 $?
has "message" "cannot run './no-such-program'" err

summary
