#!/bin/bash
# test_run.sh: run.sh gives the guest's exit status, what it printed and what it left, and never takes a guest that died or hangs for a
# success. Boots the machine four times.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# guest STATUS PATTERN SCRIPT-TEXT [OPTION...]: runs the text; expects the status and a line of output or message
guest() {
    local want=$1 pattern=$2 text=$3 got=0
    shift 3
    echo "$text" >"$tmp/script.sh"
    "$here/run.sh" "$@" --out "$tmp/out" "$tmp/script.sh" "$tmp/a file" -- "an argument" >"$tmp/said" 2>&1 || got=$?
    if [ "$got" != "$want" ] || ! grep -q -- "$pattern" "$tmp/said"; then
        echo "FAILED: '$text': exit $got, expected $want and /$pattern/; it said:"
        cat "$tmp/said"
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
guest 7 'an argument: content; b c' 'echo "$1: $(cat "a file"); $NAME"; echo result >"$PTVM_OUT/r"; exit 7' --env 'NAME=b c'
[ "$(cat "$tmp/out/r")" = result ] || { echo "FAILED: --out did not bring the result"; exit 1; }
guest 1 before 'echo before; false; echo never'
! grep -q never "$tmp/said" || { echo "FAILED: the script went on behind a failure"; exit 1; }
guest 125 'ended without telling the status' 'echo o >/proc/sysrq-trigger; sleep 100'
guest 124 'did not end within 40 s' 'echo early; sleep 1000' --timeout 40
grep -q early "$tmp/said" || { echo "FAILED: what a hanging script printed is lost"; exit 1; }

refused 'machine is not set up' --dir "$tmp/none" "$tmp/script.sh"
refused 'no script' --keep
refused 'needs a value' --timeout
refused 'unknown option --nonsense' --nonsense
refused 'cannot read' "$tmp/no-such-script"
echo "run.sh: as expected"
