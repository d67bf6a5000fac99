#!/bin/bash
# A trigger that waits for what the target never does says so, once while it waits and at the end; one whose call is made does not.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }
cp "$programs/kinds" kinds
start ./kinds sleep >noted
target=$pid
never="syscall:nanosleep>1h"
says="not called since armed"

# Two stalls of the workload that began since then.
more() { [ "$(wc -l <noted)" -ge $((before + 3)) ]; }
seen_more() {
    before=$(wc -l <noted)
    wait_for 300 more || fail "the workload does not go on"
}

start_arm --source sample -p "$target" --on "$never" --on 'syscall:clock_nanosleep>1h' --on "func:$work/kinds!beat>1h" --on "call:$work/kinds!beat" \
    --on "func:$work/kinds!slow_function>1h" --no-decode -o x
wait_for 300 grep -q "^$never: $says" arm.err || fail "not told while it waits" arm.err
seen_more
kill -TERM "$arm"
end_of "$arm" 300 arm
[ "$(grep -c "^$never: $says" arm.err)" = 1 ] || fail "told more than once" arm.err
grep -q "^$never did not fire: $says; clock_nanosleep was, [0-9,]* times\?, worst [0-9.]* \(ms\|s\)\$" arm.err || fail "not told at the end" arm.err
for entered in "syscall:clock_nanosleep>1h" "func:$work/kinds!slow_function>1h"; do
    grep -qF "$entered did not fire: the longest was " arm.err || fail "$entered is told as it is not" arm.err
done
for never in "func:$work/kinds!beat>1h" "call:$work/kinds!beat"; do
    grep -qxF "$never did not fire: not entered since armed" arm.err || fail "not told: $never" arm.err
done

"$STALLTRAP" watch -p "$target" --on 'syscall:nanosleep>1h' 2>watch.err >watch.out &
watch=$!
wait_for 300 grep -q "^syscall:nanosleep>1h: $says" watch.err || fail "watch does not tell it" watch.err
kill "$watch"
