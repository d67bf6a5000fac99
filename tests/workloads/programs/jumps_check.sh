#!/bin/sh
# Each call that tail_calls.tree marks [tail] must be a jump in the compiled program.
# usage: jumps_check.sh OBJDUMP PROGRAM
set -u
code=$("$1" -d --no-show-raw-insn "$2") || exit 1
check() { # check CALLER CALLEE
    body=$(printf '%s\n' "$code" | awk -v f="<$1>:" '$2 == f {on = 1; next} /^$/ {on = 0} on')
    printf '%s\n' "$body" | grep -Eq "[[:space:]]j[a-z]+[[:space:]]+(0x)?[0-9a-f]+ <$2>" || { echo "$1 does not jump to $2"; exit 1; }
}
check first_link middle_link
check middle_link last_link
check last_link leaf
check ping pong
check pong ping
body=$(printf '%s\n' "$code" | awk '$2 == "<jump_through>:" {on = 1; next} /^$/ {on = 0} on')
printf '%s\n' "$body" | grep -Eq 'jmpq?[[:space:]]+\*' || { echo "jump_through does not jump through its pointer"; exit 1; }
