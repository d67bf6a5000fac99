#!/bin/bash
# A program that logs its own calls is sampled: every call of five periods or more is in the database, with start and end within 1.5
# periods, and the time in each function is within 3 % of the truth. By rings of CPUs (a command) and by one of a thread.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
start_control

check() { # NAME DB
    [ "$(sql "$2" "SELECT value FROM meta WHERE key = 'source'")" = sample ] || fail "$1: meta.source"
    # A call's ends are known to within a period and a half.
    python3 "$SOURCE/tests/cli/check_sampled.py" "$2" truth || fail_by_time 1504000 "$1: the trace is not what the program did"
    control_off >/dev/null
}

"$STALLTRAP" arm --source sample --freq 997 -o command -- "$programs/timed_calls" 3 >out 2>arm.err || fail "arm ends with $?" arm.err
grep -E '^[a-z_]+ [0-9]+ [0-9]+$' out >truth
check "a command" command.1.db

mkfifo go
start bash -c 'read -r _ <go; exec "$1" 3' _ "$programs/timed_calls" >truth
start_arm --source sample --freq 997 --ring 4M -p $pid -o thread
echo >go
end_of $arm 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
check "a process" thread.1.db

# Without frame pointers: by DWARF, out of the stripped file's unwind table.
cc -O2 -fomit-frame-pointer -D_GNU_SOURCE "$SOURCE/tests/workloads/programs/timed_calls.c" -rdynamic -s -o bare || fail "cc"
"$STALLTRAP" arm --source sample --callgraph dwarf --freq 997 --ring 64M -o bare -- ./bare 2 >out 2>arm.err || fail "arm ends with $?" arm.err
grep -E '^[a-z_]+ [0-9]+ [0-9]+$' out >truth
check "without frame pointers" bare.1.db

# perf unwinds the same samples of the same snapshot to the same stacks. It needs the names, so the file is not stripped here.
cc -O2 -fomit-frame-pointer -D_GNU_SOURCE "$SOURCE/tests/workloads/programs/timed_calls.c" -rdynamic -o named || fail "cc"
start ./named 2 >/dev/null
start_arm --source sample --callgraph dwarf --freq 997 --ring 64M -p $pid -o named
end_of $arm 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
perf script --no-inline --ns -F tid,time,event,ip,sym -i named.1.data 2>/dev/null >perf.stacks
python3 "$SOURCE/tests/cli/check_unwound.py" named.1.db <perf.stacks || fail "perf unwinds other stacks"
