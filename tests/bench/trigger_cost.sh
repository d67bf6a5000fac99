#!/bin/sh
# The cost of an offcpu trigger on a context switch, beside bpftrace's. Needs root, bpftrace and perf.
set -eu
here=$(dirname "$0")
exec "${BUILD:-build}/tests/bench/trigger_cost" "$here/offcpu.bt" "$@"
