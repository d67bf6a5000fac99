#!/bin/bash
# arm decodes what it wrote: what it prints, whom it leaves alone, and what happens when decoding fails.
. "$(dirname "$0")/arm_lib.sh"

# value DB SQL: the query's first value
value() {
    "$STALLTRAP" query "$1" "$2" --format csv | tail -n +2
}

run "snapshot and database, told in one line"
"$STALLTRAP" arm --source step -o both --then 'echo "$STALLTRAP_DB" >db' -- ./arm_target end 5 10 >out 2>err
is "exit status" 0 $?
has "result" '^wrote both\.1\.data, both\.1\.db \([0-9,]+ calls, .* of history.*\)$' out
is "lines of it" 1 "$(wc -l <out)"
is "STALLTRAP_DB" "$work/both.1.db" "$(cat db)"
is "mode of the database" 600 "$(stat -c %a both.1.db)"
is "calls of target_leaf" 20 "$("$STALLTRAP" query both.1.db "SELECT count(*) AS n FROM calls WHERE function = 'target_leaf'" --format csv | tail -1)"
no_leftovers

run "of a command nothing is missing, and nobody is listed who is not of it: no child of arm, no thread without calls"
is "gaps" 0 "$(value both.1.db 'SELECT count(*) AS n FROM gaps')"
is "threads" 'arm_target' "$(value both.1.db "SELECT group_concat(name) AS names FROM threads")"
"$STALLTRAP" arm --source step -o rounds -- ./arm_target rounds 5 1 >out 2>err
is "exit status" 0 $?
is "gaps" 0 "$(value rounds.1.db 'SELECT count(*) AS n FROM gaps')"
is "threads: itself, four, and a child" 6 "$(value rounds.1.db 'SELECT count(*) AS n FROM threads')"
is "processes" 2 "$(value rounds.1.db 'SELECT count(DISTINCT pid) AS n FROM threads')"
is "threads without calls or a name" 0 "$(value rounds.1.db "SELECT count(*) AS n FROM threads WHERE calls = 0 OR name LIKE ':%'")"
is "calls of the threads' function" 4 "$(value rounds.1.db "SELECT count(*) AS n FROM calls WHERE function = 'count_thread'")"

run "of a process that was there before, what came before is missing, of its new threads nothing"
start_target rounds 5 100000
arm -o there -p "$target"
born() { # a thread, or a child, while armed
    [ "$(tail -n 1 target.out)" != "$before" ]
}
before=$(tail -n 1 target.out)
wait_for "new threads" born
kill -INT "$arm"
wait_arm
is "gaps" 'not attached' "$(value there.1.db 'SELECT DISTINCT reason AS r FROM gaps')"
is "gaps of threads that were born later" 0 \
    "$(value there.1.db 'SELECT count(*) AS n FROM gaps g JOIN threads t ON t.id = g.thread_id WHERE t.start_ns IS NOT NULL')"
kill "$target"

run "a JIT function has its name"
start_target jit 20
wait_for "the JIT function" grep -q jit target.out
arm -o jit -p "$target"
sleep 0.3
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
has "calls of it" '^[1-9]' <("$STALLTRAP" query jit.1.db "SELECT count(*) AS n FROM calls WHERE function = 'jitted_successor'" --format csv | tail -1)
kill "$target"
rm -f "/tmp/perf-$target.map"

run "a second Ctrl-C ends the decoding, not the snapshot"
cat >slow.sh <<'EOF'
sleep 30
EOF
start_target idle 20
arm --no-decode -o twice -p "$target" --then 'sh ./slow.sh'
kill -INT "$arm"
wait_for "the snapshot" test -e twice.1.data
sleep 0.3
kill -INT "$arm"
begin=$SECONDS
wait_arm
is "exit status" 0 $status
[ $((SECONDS - begin)) -lt 10 ] || fail "it waited for the action"
has "what is given up" 'ended by another signal: what was still to be done is given up' err
has "what to do" "the snapshot stays: 'stalltrap decode twice\.1\.data' makes its database" err
alive "$target" || fail "the target did not survive"

run "a second Ctrl-C while the snapshot is being written is the first one: timeout sends two"
arm -o both-signals -p "$target"
straced -e trace=fsync -e inject=fsync:delay_enter=1000000
kill -INT "$arm"
wait_for "the writing" grep -q 'snapshot on Ctrl-C' err
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
has "result" '^wrote both-signals\.1\.data, both-signals\.1\.db' out

run "the target is let go before the decoding"
arm --no-decode -o free -p "$target" --then "grep TracerPid /proc/$target/status >tracer"
kill -INT "$arm"
wait_arm
is "its tracer while the action runs" "0" "$(awk '{print $2}' tracer)"
kill "$target"

if [ "$(id -u)" = 0 ]; then
    run "a folder of another user: root without capabilities may not write there, the database comes all the same"
    mkdir theirs
    chown 65534 theirs
    "$STALLTRAP" arm --source step -o theirs/x -- ./arm_target end 1 1 >out 2>err
    is "exit status" 0 $?
    has "result" '^wrote theirs/x\.1\.data, theirs/x\.1\.db ' out
    [ -s theirs/x.1.db ] || fail "no database"
fi

run "a disk that is full for the database only: the snapshot stays, the exit status is 0"
unshare -m bash -c '
    mkdir -p full
    mount -t tmpfs -o size=100k tmpfs full || exit 99
    "$STALLTRAP" arm --source step -o full/x -- ./arm_target end 1 20 >out 2>err
    echo $? >status
    ls -A full >left'
is "exit status" 0 "$(cat status)"
is "files" "x.1.data" "$(cat left)"
has "result" '^wrote full/x\.1\.data$' out
has "warning" 'decoding failed .*; the snapshot is whole: stalltrap decode full/x\.1\.data' err

summary
