#!/bin/bash
# test_run.sh: run.sh gives the guest's exit status, what it printed and what it left, and never takes a guest that died or hangs for a
# success. Boots the machine four times, the last three at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# guest NAME STATUS PATTERN SCRIPT-TEXT [OPTION...]: runs the text; expects the status and a line of output or message. What it said is
# in the file NAME.said, what it left in the folder NAME.out.
guest() {
    local name=$1 want=$2 pattern=$3 text=$4 got=0
    shift 4
    echo "$text" >"$tmp/$name.sh"
    "$here/run.sh" "$@" --out "$tmp/$name.out" "$tmp/$name.sh" "$tmp/a file" -- "an argument" >"$tmp/$name.said" 2>&1 || got=$?
    if [ "$got" != "$want" ] || ! grep -q -- "$pattern" "$tmp/$name.said"; then
        echo "FAILED: '$text': exit $got, expected $want and /$pattern/; it said:"
        cat "$tmp/$name.said"
        exit 1
    fi
}

refused() { # PATTERN OPTION...
    local pattern=$1 got=0
    shift
    "$here/run.sh" "$@" >"$tmp/said" 2>&1 || got=$?
    if [ "$got" != 125 ] || ! grep -q -- "$pattern" "$tmp/said"; then
        echo "FAILED: run.sh $*: exit $got, expected 125 and /$pattern/; it said: $(cat "$tmp/said")"
        exit 1
    fi
}

echo content >"$tmp/a file"
begin=$SECONDS
guest status 7 'an argument: content; b c' 'echo "$1: $(cat "a file"); $NAME"; echo result >"$PTVM_OUT/r"; exit 7' --env 'NAME=b c'
boot=$((SECONDS - begin)) # here and now
[ "$(cat "$tmp/status.out/r")" = result ] || { echo "FAILED: --out did not bring the result"; exit 1; }

limit=$((3 * boot + 6)) # long enough to come up beside two others
guest hangs 124 "did not end within $limit s" 'echo early; sleep 1000' --timeout $limit &
hangs=$!
guest dies 125 'ended without telling the status' 'echo o >/proc/sysrq-trigger; sleep 100' &
dies=$!
guest fails 1 before 'echo before; false; echo never'
wait $dies
wait $hangs
! grep -q never "$tmp/fails.said" || { echo "FAILED: the script went on behind a failure"; exit 1; }
grep -q early "$tmp/hangs.said" || { echo "FAILED: what a hanging script printed is lost"; exit 1; }

refused 'machine is not set up' --dir "$tmp/none" "$tmp/status.sh"
refused 'no script' --keep
refused 'needs a value' --timeout
refused 'unknown option --nonsense' --nonsense
refused 'cannot read' "$tmp/no-such-script"
echo "run.sh: as expected"
