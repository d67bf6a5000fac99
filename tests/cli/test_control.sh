#!/bin/bash
# The control that tests of time are excused by tells when something held a CPU for longer than it sleeps, and how long.
set -u
. "$SOURCE/tests/cli/lib.sh"
coproc CONTROL { exec "$BUILD/tests/control"; }
started+=("$CONTROL_PID")
read -r -t 300 ready <&"${CONTROL[0]}" || fail "the control does not start"
[ "$ready" = ready ] || { echo "skipped: SCHED_FIFO is not to be had here"; exit 77; }
control_off >first

# A program of the same priority is not moved away. How long it took it says itself; the control can have slept at its end only.
cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
chrt -f 99 taskset -c "$cpu" bash -c 'begun=${EPOCHREALTIME/./}; while ((${EPOCHREALTIME/./} - begun < 200000)); do :; done' || fail "no hog"
off=$(control_off)
echo "off by $(cat first) ns at first, then by $off ns"
[ "$off" -ge 100000000 ] || fail "a CPU was held for 200 ms, and the control was off by $off ns only"

# A figure with a tolerance that is less than twice that is inconclusive, another one fails.
work_of() { (fail_by_time "$1" "some figure" >said 2>&1); echo $?; }
control_off() { echo 100000000; }
[ "$(work_of 150000000)" = 77 ] && grep -q '^inconclusive: .*some figure' said || fail "it is not excused" said
[ "$(work_of 250000000)" = 1 ] && grep -q '^FAILED: some figure' said || fail "it is excused" said
