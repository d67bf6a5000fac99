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
is "traps" 1 "$(grep -c '^trap [0-9]*: ' out)"
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

run "a probe that is built into the program, and what it logs, its bytes made printable"
cc -O1 -g -D_GNU_SOURCE -Wl,--build-id "$SOURCE/tests/cli/mark_target.c" -o mark_target || exit 1
./mark_target beats >/dev/null 2>&1 &
beater=$!
disown "$beater"
started+=("$beater")
"$STALLTRAP" arm --source sample -p "$beater" --on 'usdt:mark_target:st_test:beat,if=arg0>=50' --warm-up 500ms --timeout 60s -o u \
    --mark usdt:mark_target:st_test:beat --mark write:2 >out 2>err
is "exit status" 0 $?
marks() { # SQL, of the marks that were asked for, in the order of their times
    "$STALLTRAP" query u.1.db "WITH m AS (SELECT m.*, t.pid AS tid FROM mark m JOIN threads t ON t.id = m.thread_id
        WHERE m.name LIKE 'usdt:%' OR m.name LIKE 'write:%') $1" --format csv | tail -n +2
}
is "names" "usdt:mark_target:st_test:beat write:2 " "$(marks 'SELECT DISTINCT name FROM m ORDER BY 1' | tr '\n' ' ')"
is "whose they are" "$beater" "$(marks 'SELECT DISTINCT tid FROM m')"
# Each beat is a probe, a line and a gathered line, with the beat's own number; the last one may be cut by the snapshot.
marks "SELECT name, detail FROM m ORDER BY time_ns" >beats
python3 - beats <<'END' || fail "the marks are not what the program did"
import re, sys
kinds = [r'usdt:mark_target:st_test:beat,arg0=(\d+) arg1=7$',
         r'write:2,bytes=\d+ text=request (\d+) \\x1b\[31mserved$',
         r'write:2,bytes=\d+ text=gathered (\d+)$']
lines = open(sys.argv[1]).read().splitlines()
while not lines[0].startswith('usdt'):
    lines.pop(0)
numbers = []
for i, line in enumerate(lines):
    found = re.match(kinds[i % 3], line)
    if not found:
        sys.exit(f'line {i}: {line}')
    numbers.append(int(found[1]))
    if numbers[i] != numbers[0] + i // 3:
        sys.exit(f'line {i} is of beat {numbers[i]}, not {numbers[0] + i // 3}')
if len(numbers) < 60:
    sys.exit(f'{len(numbers)} marks only')
END
kill -KILL "$beater"

run "of a flood the newest are kept, and no stall record is lost for it"
./mark_target flood 100000 2>/dev/null &
flood=$!
disown "$flood"
started+=("$flood")
"$STALLTRAP" arm --source sample -p "$flood" --on 'syscall:clock_nanosleep>100ms' --until-end 0 --snapshots 2 --timeout 60s -o f --mark write:2 >out 2>err
is "exit status" 0 $?
is "traps" 2 "$(grep -c '^trap [0-9]*: ' out)"
query() {
    "$STALLTRAP" query f.2.db "$1" --format csv | tail -n +2
}
line="CAST(substr(detail, instr(detail, 'request ') + 8) AS integer)"
# The lines of the last flood up to its end, without one missing.
query "SELECT $line FROM mark WHERE name = 'write:2' ORDER BY time_ns DESC" >newest
python3 - newest <<'END' || fail "the newest marks are not there"
import sys
got = [int(x) for x in open(sys.argv[1])]
if got[0] != 100000:
    sys.exit(f'the newest mark is of line {got[0]}')
whole = next((i for i, x in enumerate(got) if x != 100000 - i), len(got))
if whole < 1000:
    sys.exit(f'{whole} of the newest lines only')
END
# One that ended while the snapshot was being written is there too, and has not fired.
is "stalls" 2 "$(query "SELECT count(*) FROM stall WHERE kind = 'syscall' AND fired")"
is "what is missing" "older marks were dropped for room" "$(query "SELECT DISTINCT detail FROM gaps WHERE detail LIKE '%marks%'")"
lacks "records that were lost" 'could not be written|were lost' err
kill -KILL "$flood"

run "what is no mark"
for text in 'offcpu>20ms' 'write' 'write:' 'write:stderr' 'write:-1' 'write:2x' 'write:99999999999' 'write:2,if=arg0==1' 'tracepoint:no:such' 'func:' ''; do
    "$STALLTRAP" arm -p "$target" --mark "$text" --timeout 1s >out 2>err
    is "--mark '$text'" 2 $?
    has "message" '--mark|no:such|tracepoint' err
done
kill -KILL "$target" $helpers
summary
