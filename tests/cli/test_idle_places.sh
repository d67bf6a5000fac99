#!/bin/bash
# A sleep elsewhere than where a loop waits for work fires, and what did not count is told at the end. Needs root: BPF
# programs are loaded.
. "$(dirname "$0")/arm_lib.sh"

# A loop that waits in poll, and each 150 turns sleeps: with a line in `slept`.
python3 -I -S -c '
import select, time
loop = select.poll()
while True:
    for _ in range(150): loop.poll(1)
    time.sleep(0.06)
    print("slept", flush=True)' >slept &
target=$!
disown "$target"
started+=("$target")

slept() { wc -l <slept; }
slept_since() { [ "$(slept)" -ge $(($1 + $2)) ]; }

# Runs until the target has slept 3 times since it began: what was printed is in out and err.
for_three() { # COMMAND...
    local begin
    : >err
    "$STALLTRAP" "$@" >out 2>err &
    local pid=$!
    started+=("$pid")
    wait_for "it to begin" grep -Eq '^(watching|armed)' err
    begin=$(slept)
    wait_for "three sleeps" slept_since "$begin" 3
    kill -TERM "$pid"
    wait "$pid"
}

run "watch tells the places"
for_three watch -p "$target" --on 'offcpu>20ms,idle=learned'
is "exit status" 0 $?
has "which process" "^offcpu>20ms,idle=learned: where process $target waits for work$" out
has "the loop" '^ +[0-9,]{3,} +9[0-9]\.[0-9] % +0 .* poll +.*\(' out
has "the sleep" '^ +[2-9] +[0-9]\.[0-9] % +[1-9] .* (clock_)?nanosleep +.*\(' out
"$STALLTRAP" watch -p "$target" --on 'offcpu>20ms' --timeout 200ms >out 2>err
lacks "places where nothing is learned" 'waits for work$' out

run "a sleep elsewhere fires"
"$STALLTRAP" arm --source sample --no-decode -o fires -p "$target" --on 'offcpu>20ms,state=sleeping' --timeout 60s >out 2>err
is "exit status" 0 $?
has "the trap" "^trap 1: thread $target .*nanosleep" out
lacks "what was left out where something fired" ', idle: thread' err

run "what did not count is told when nothing fired"
for_three arm --source sample --no-decode -o none -p "$target" --on 'offcpu>20ms,state=sleeping,idle=list' --on 'busy>40s'
is "exit status" 4 $?
has "the sleep" "^  offcpu>20ms,state=sleeping,idle=list: (clock_)?nanosleep [0-9.]+ ms, idle: thread $target \"python3\" at .*; idle=yes counts it$" err
lacks "what stayed below the threshold" '^  busy' err

summary
