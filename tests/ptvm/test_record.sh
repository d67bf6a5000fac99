#!/bin/bash
# test_record.sh OPTION...: run.sh with these options, one of whose commands is guest_record.sh; then the machine's own test: perf decodes
# exactly the calls of the programs that were recorded, without an error, and outside the same as inside.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad() {
    echo "FAILED: $1"
    exit 1
}
"$here/run.sh" --out "$out" "$@"
"$here/record-list.sh" "$out"
cmp "$out/inside/default.cr" "$out/default.cr" || bad "perf lists something else outside than in the machine"

# The check itself: a listing that lacks one call, and one of another length, are not taken for nest's.
line=$(grep -n 'call .*=> .* rec+0x0' "$out/default.cr" | sed -n '100s/:.*//p')
sed "${line}d" "$out/default.cr" >"$out/damaged.cr"
! "$here/check_nest.py" "$out/damaged.cr" 300 2>/dev/null || bad "check_nest.py takes a listing that lacks line $line"
! "$here/check_nest.py" "$out/default.cr" 299 2>/dev/null || bad "check_nest.py takes 300 rounds for 299"
