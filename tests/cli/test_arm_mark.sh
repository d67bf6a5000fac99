#!/bin/bash
# --mark: instants with their arguments on the timeline, of tracepoints and functions. Needs root.
. "$(dirname "$0")/arm_lib.sh"
program=$BUILD/tests/workloads/causes

"$program" slow-server >/dev/null 2>&1 &
target=$!
disown "$target"
started+=("$target")
sleep 0.3
helpers=$(pgrep -P "$target")

run "marks lie where they happened, of the thread they happened in, and fire nothing"
"$STALLTRAP" arm --source sample -p "$target" --on 'offcpu>20ms,idle=yes,state=sleeping' --warm-up 600ms --timeout 60s -o m \
    --mark tracepoint:syscalls:sys_enter_ppoll --mark 'func:causes!wait_for_answer' --mark 'tracepoint:syscalls:sys_enter_ppoll,if=nfds==77' >out 2>err
is "exit status" 0 $?
is "traps" 1 "$(grep -c '^trap' out)"
"$STALLTRAP" query m.1.db "SELECT DISTINCT name FROM mark WHERE name NOT IN ('offcpu', 'woken') ORDER BY 1" --format csv | tail -n +2 >names
is "names" "func:causes!wait_for_answer tracepoint:syscalls:sys_enter_ppoll " "$(tr '\n' ' ' <names)"
# The system call of the wait that fired begins right before it, and is made by the function that was marked before that.
"$STALLTRAP" query m.1.db "SELECT count(*) FROM stalls s JOIN meta k ON k.key = 'trigger_stall_id' AND k.value = s.id
    JOIN mark p ON p.thread_id = s.thread_id AND p.name LIKE 'tracepoint:%' AND p.time_ns BETWEEN s.start_ns - 20000000 AND s.start_ns
    JOIN mark f ON f.thread_id = s.thread_id AND f.name LIKE 'func:%' AND f.time_ns BETWEEN p.time_ns - 20000000 AND p.time_ns
    WHERE p.detail LIKE '%nfds=1%' AND f.detail LIKE 'arg0=%'" --format csv | tail -1 >pairs
[ "$(cat pairs)" -ge 1 ] || fail "no marks right before the wait"
"$STALLTRAP" export m.1.db --to chrome -o m.json && grep -q 'sys_enter_ppoll' m.json || fail "the export has no marks"

run "without a trigger too"
"$STALLTRAP" arm --source sample -p "$target" --mark tracepoint:syscalls:sys_enter_ppoll -o n >out 2>err &
arm=$!
wait_for "it to be armed" grep -q '^armed' err
sleep 0.5
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
[ "$("$STALLTRAP" query n.1.db "SELECT count(*) FROM mark WHERE name LIKE 'tracepoint:%'" --format csv | tail -1)" -ge 2 ] || fail "no marks"
is "stalls" 0 "$("$STALLTRAP" query n.1.db 'SELECT count(*) FROM stalls' --format csv | tail -1)"

run "what is no mark"
for text in 'offcpu>20ms' 'write' 'tracepoint:no:such' 'func:' ''; do
    "$STALLTRAP" arm -p "$target" --mark "$text" --timeout 1s >out 2>err
    is "--mark '$text'" 2 $?
    has "message" '--mark|no:such|tracepoint' err
done
kill -KILL "$target" $helpers
summary
