#!/bin/bash
# record-list.sh OUTDIR: perf's decoding, here, of what record-user.sh and record-overflow.sh brought out of the machine: OUTDIR/listings-*
# tells which, and what is to be expected: nest N (its true sequence), some (calls at all), overflows (errors, and all of them overflows).
set -euo pipefail
here=$(dirname "$(realpath "$0")")
export PTVM_WORK=$1
. "$here/record-lib.sh"

list_overflows() { # NAME
    local file=$work/$1.cr errors others
    perf --buildid-dir "$bdir" script -i "$work/$1.data" --itrace=cre --ns -F tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso >"$file" 2>"$work/said" ||
        fail "$1: perf script: $(head -n 5 "$work/said")"
    errors=$(grep -c 'instruction trace error' "$file") || fail "$1: no overflow was injected"
    others=$(grep 'instruction trace error' "$file" | grep -vic overflow) || true
    [ "$others" = 0 ] || fail "$1: $others errors that are no overflows: $(grep 'instruction trace error' "$file" | grep -vi -m 3 overflow)"
    echo "$1: $errors overflows, $(wc -l <"$file") lines"
}

while read -r name suffix itrace expected n; do
    if [ "$expected" = overflows ]; then
        list_overflows "$name"
        continue
    fi
    list "$name" "$suffix" "$itrace"
    [ -s "$work/$name.$suffix" ] || fail "$name: perf lists nothing"
    [ "$expected" != nest ] || "$here/check_nest.py" "$work/$name.$suffix" "$n" || fail "$name: not nest's calls"
done < <(cat "$work"/listings-*)
rm -f "$work/said" "$work"/listings-*
