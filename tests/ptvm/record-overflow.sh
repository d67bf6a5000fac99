# record-overflow.sh BIN: runs inside a machine that injects overflows (run.sh --cpu ,x-pt-ovf-period=N). Leaves in $PTVM_OUT a recording
# of `nest 3000` with OVF packets in it, in whose listing the only errors have to be the overflows.
. ./record-lib.sh
set -u
name=nest-3000-overflow
rec $name -m,4M -e intel_pt//u -- "$1/nest" 3000
later $name cr cr overflows
keep "$PTVM_OUT" $name data
