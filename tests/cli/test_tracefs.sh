#!/bin/bash
# Where tracefs is mounted nowhere, a privileged arm looks into one of its own, and has the wake-ups all the same.
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
[ -e /sys/kernel/tracing/events/sched/sched_waking/id ] || { echo "skipped: there is no tracefs"; exit 77; }
unshare -m true 2>/dev/null || { echo "skipped: no name space of mounts"; exit 77; }

start sleep 1000
export target=$pid
unshare -m bash -c 'while umount /sys/kernel/tracing 2>/dev/null || umount /sys/kernel/debug/tracing 2>/dev/null; do :; done
    ls /sys/kernel/tracing/events >mounted 2>/dev/null
    exec "$STALLTRAP" arm --source sample -p "$target" --ready-fd 9 -o own 9>ready >arm.out 2>arm.err' &
started+=($!)
arm=$!
wait_for 300 armed_or_gone && grep -qx armed ready || fail "arm without tracefs" arm.err
[ ! -s mounted ] || { echo "skipped: tracefs stays mounted"; exit 77; }
kill -INT "$arm"
end_of "$arm" 300 arm
[ "$status" -eq 0 ] || fail "arm ends with $status" arm.err
grep -q '^armed: ' arm.err && ! grep -q 'no wake-ups' arm.err || fail "it has no wake-ups" arm.err
