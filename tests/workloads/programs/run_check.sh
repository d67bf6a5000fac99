#!/bin/sh
# Runs a program as it is shipped and checks its exit status and, if given, its output.
# usage: run_check.sh EXIT-STATUS PROGRAM [OUTPUT [ARGUMENT...]]
set -u
expected=$1 program=$2 output=${3-}
[ $# -ge 3 ] && shift
shift 2
found=$("$program" "$@" 2>&1)
status=$?
[ $status -eq "$expected" ] || { echo "exit status $status, expected $expected"; exit 1; }
[ -z "$output" ] || [ "$found" = "$output" ] || { echo "printed '$found', expected '$output'"; exit 1; }
