#!/bin/bash
# Names with spaces and commas in a trigger: programs, and what is the user's own, at a path that has them.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }
mkdir "a, b > c"
program="$work/a, b > c/the kinds"
cp "$programs/kinds" "$program"
cp "$BUILD/tests/user.bpf.o" "a, b > c/my rules.o"
start "$program" hit >noted
target=$pid
for trigger in "func:\"$program\"!probe>1ns" "call:\"$program!probe\"" "usdt:\"$program\":st_test:beat,if=arg0==3" "usdt:the\\ kinds:st_test:beat" \
    "quiet:\"the kinds!probe\">1ms" 'bpf:"a, b > c/my rules.o"'; do
    rm -rf x.*
    start_arm --source sample -p "$target" --on "$trigger" --no-decode -o x
    end_of "$arm" 600 "arm --on $trigger"
    [ $status = 0 ] || fail "arm --on $trigger ends with $status" arm.out arm.err
    grep -q '^trap 1: ' arm.out || fail "$trigger: no line about the trap" arm.out
done
