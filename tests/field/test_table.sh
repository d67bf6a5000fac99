#!/bin/bash
# The table of docs/field.md, a little of it: that it can be made, and reaches its goals for the program that is known best. `make field-table` makes all.
. "$SOURCE/tests/field/lib.sh"
need redis-server redis-server
need bpftrace bpftrace

/usr/bin/python3 "$field/table.py" --stalltrap "$STALLTRAP" --build "$work" --programs redis --causes sleep,compute,stopped --trials 1 --quiet 2
status=$?
[ $status -ne 77 ] || exit 77
[ $status -eq 0 ] || fail "a goal is missed"
leftover=$(ls -d /sys/fs/cgroup/*/stalltrap-field-* 2>/dev/null)
[ -z "$leftover" ] || fail "control groups are left: $leftover"
