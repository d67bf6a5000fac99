#!/bin/sh
# The cost of triggers, beside bpftrace's scripts for the same questions. Needs root, bpftrace and perf.
set -eu
here=$(dirname "$0")
exec "${BUILD:-build}/tests/bench/trigger_cost" "$here" "$@"
