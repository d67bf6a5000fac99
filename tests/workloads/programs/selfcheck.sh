#!/bin/sh
# Runs the instrumented build of a program and compares the calls it made with its known tree.
# usage: selfcheck.sh TREECHECK PROGRAM TREE EXIT-STATUS [--without NAME]...
set -u
treecheck=$1 program=$2 tree=$3 expected=$4
shift 4
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
TREE_LOG=$work/log "$program" >"$work/out" 2>&1
status=$?
if [ $status -ne "$expected" ]; then
    echo "exit status $status, expected $expected"
    cat "$work/out"
    exit 1
fi
"$treecheck" log "$work/log" >"$work/tree" && "$treecheck" --tails nested "$@" compare "$tree" "$work/tree" && exit 0
echo "--- the calls as logged"
cat "$work/tree"
exit 1
