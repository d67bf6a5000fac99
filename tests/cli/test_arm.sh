#!/bin/bash
# arm: what makes it take a snapshot, what ends it, what it leaves, what it says.
. "$(dirname "$0")/arm_lib.sh"

run "a command is recorded from its first instruction to its end"
"$STALLTRAP" arm --source step --no-decode -o cmd -- ./arm_target end 5 10 >out 2>err
is "exit status" 0 $?
has "result" '^wrote cmd\.1\.data$' out
has "armed line" '^armed: step, user, .* 1 thread; waiting for Ctrl-C or the target.s end$' err
is "mode of the snapshot" 600 "$(stat -c %a cmd.1.data)"
perf_reads cmd.1.data
is "calls of target_leaf that perf decodes" 20 "$(grep -c '=> .* target_leaf+0x0 ' perf.calls)"
is "the first thing that ran" 1 "$(grep 'branches' perf.calls | head -1 | grep -c '_start+0x0')"
no_leftovers

run "perf has nothing to complain of in the snapshot of a program with all that dynamic linking does"
"$STALLTRAP" arm --source step --no-decode -o nest -- "$BUILD/tests/workloads/nest" >out 2>err
is "exit status" 0 $?
perf_reads nest.1.data
perf_events nest.1.data 5
perf script --itrace=cr -i nest.1.data >perf.calls 2>perf.err || fail "perf script --itrace=cr fails"
is "its complaints" "" "$(cat perf.err)"
[ "$(grep -c ' => ' perf.calls)" -gt 1000 ] || fail "perf finds hardly any call"
perf report -D -i nest.1.data >perf.dump 2>perf.err || fail "perf report -D fails"
is "its complaints" "" "$(cat perf.err)"

run "numbers go on after the highest, nothing is overwritten"
echo mine >cmd.7.db
"$STALLTRAP" arm --source step --no-decode -o cmd -- ./arm_target end 1 1 >out 2>err
has "result" '^wrote cmd\.8\.data$' out
is "the file that was there" mine "$(cat cmd.7.db)"

run "a command's name is looked up, and exec's failure is told"
"$STALLTRAP" arm --source step -- no-such-command-anywhere >out 2>err
is "exit status" 1 $?
has "message" "cannot run 'no-such-command-anywhere': no such program in PATH" err
printf '#!/no/such/interpreter\n' >script
chmod 755 script
"$STALLTRAP" arm --source step --no-decode -o script -- ./script >out 2>err
is "exit status" 1 $?
has "message" "cannot run './script': No such file or directory" err
is "snapshots of nothing" "" "$(ls script.*.data 2>/dev/null)"

run "SIGUSR2 takes a snapshot and goes on; SIGTERM ends"
start_target idle 20
arm --no-decode -o usr -p "$target"
kill -USR2 "$arm"
wait_for "the first snapshot" test -e usr.1.data
kill -USR2 "$arm"
wait_for "the second snapshot" test -e usr.2.data
kill -TERM "$arm"
wait_arm
is "exit status" 0 $status
is "snapshots" 2 "$(find . -name 'usr.*.data' | wc -l)"
alive "$target" || fail "the target did not survive"
perf_reads usr.2.data
no_leftovers

run "Ctrl-C takes a snapshot and ends"
arm --no-decode -o int -p "$target"
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
has "result" '^wrote int\.1\.data$' out
alive "$target" || fail "the target did not survive"

run "SIGTERM ends without a snapshot"
arm --no-decode -o term -p "$target"
kill -TERM "$arm"
wait_arm
is "exit status" 4 $status
is "snapshots" "" "$(ls term.* 2>/dev/null)"
no_leftovers

run "a time-out ends"
begin=$(date +%s%N)
arm --no-decode -o late -p "$target" --on 'offcpu>20s' --timeout 700ms
wait_arm
is "exit status" 4 $status
has "message" 'nothing fired within 700 ms' err
has "what was left out" '^offcpu>20s did not fire: .*; waits for work were left out \(idle=yes counts them\)$' err
has "what the source does to the times" 'warning: --source step makes the target compute a thousand times slower' err
is "snapshots" "" "$(ls late.* 2>/dev/null)"
[ $(($(date +%s%N) - begin)) -gt 700000000 ] || fail "it ended too early"

run "without a trigger, a time-out takes a snapshot"
arm --no-decode -o timed -p "$target" --timeout 300ms
wait_arm
is "exit status" 0 $status
has "message" 'the time is up: snapshot' err
has "result" '^wrote timed\.1\.data$' out
kill "$target"

run "a target that ends makes the last snapshot"
start_target idle 20
arm --no-decode -o end -p "$target"
kill -KILL "$target"
wait_arm
is "exit status" 0 $status
has "result" '^wrote end\.1\.data$' out
perf_reads end.1.data

run "a target of two processes ends with the second"
start_target idle 20
first=$target
start_target idle 20
arm --no-decode -o two -p "$first,$target"
kill -KILL "$first"
wait_for "the end of the first" sh -c "! kill -0 $first 2>/dev/null"
"$STALLTRAP" snap "$arm" >snap.out 2>snap.err
is "exit status of snap behind the end of the first" 0 $?
alive "$arm" || fail "arm ended with the first process"
kill -KILL "$target"
wait_arm
is "exit status" 0 $status

run "the actions get the snapshot, run in order, and stop at the first failure"
"$STALLTRAP" arm --source step --no-decode -o act --then 'echo "1 $STALLTRAP_REASON $STALLTRAP_DATA [${STALLTRAP_DB:-no db}]" >>acts' \
    --then 'echo 2 >>acts; exit 3' --then 'echo 3 >>acts' -- ./arm_target end 1 1 >out 2>err
is "exit status" 0 $?
is "what the actions did" "1 end $work/act.1.data [no db],2," "$(tr '\n' , <acts)"
has "message" "warning: --then 'echo 2 >>acts; exit 3' failed: exit status 3; the actions behind it do not run" err

run "a quiet recorder says results only, and hardly ever wakes up"
start_target idle 1000
arm -q --no-decode -o quiet -p "$target"
before=$(awk '/^voluntary/ {print $2}' "/proc/$arm/status")
sleep 2
after=$(awk '/^voluntary/ {print $2}' "/proc/$arm/status")
[ $((after - before)) -lt 20 ] || fail "$((after - before)) wake-ups in 2 s"
kill -INT "$arm"
wait_arm
is "its words" "" "$(cat err)"
kill "$target"

# until_calls PREFIX NUMBER PATTERN: snapshots on SIGUSR2 until perf finds so many calls in one; a stepped target takes its time
until_calls() {
    snapshots=0
    wait_for "$2 calls like '$3' in $1" seen_calls "$@"
}

seen_calls() {
    snapshots=$((snapshots + 1))
    kill -USR2 "$arm"
    wait_for "snapshot $snapshots of $1" test -e "$1.$snapshots.data"
    perf_reads "$1.$snapshots.data"
    [ "$(grep -c -- "$3" perf.calls)" -ge "$2" ]
}

run "code without a file, and its names, are copied beside the snapshot: perf decodes it"
start_target jit 20
wait_for "the JIT function" grep -q jit target.out
arm --no-decode -o jit -p "$target"
until_calls jit 2 '=> .* jitted_successor+0x0 '
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
is "mode of the folder" 700 "$(stat -c %a jit.1.code)"
kill "$target"
rm -f "/tmp/perf-$target.map"

run "a program that was deleted while it runs is copied too"
cp arm_target doomed
./doomed idle 20 &
target=$!
disown $target
started+=("$target")
wait_for "the program to run" grep -q doomed "/proc/$target/comm"
rm doomed
arm --no-decode -o doomed -p "$target"
until_calls doomed 3 '=> .* target_leaf+0x0 '
kill -INT "$arm"
wait_arm
kill "$target"

run "what arm raises for itself neither the command nor an action has"
look='echo "$(ulimit -S -n) $(chrt -p $$ | sed -n "s/.*policy: //p")"'
(ulimit -S -n 300 && exec "$STALLTRAP" arm --source sample --no-decode -q -o limits --then "$look >action" -- sh -c "$look >command") >out 2>err
is "exit status" 0 $?
is "of the command" "300 SCHED_OTHER" "$(cat command)"
is "of the action" "300 SCHED_OTHER" "$(cat action)"

summary
