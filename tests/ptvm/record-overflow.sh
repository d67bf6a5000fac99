# record-overflow.sh BIN: runs inside a machine that injects overflows (run.sh --cpu ,x-pt-ovf-period=N). Leaves in $PTVM_OUT a recording
# of `nest 3000` with OVF packets in it, and perf's listing, whose only errors are the overflows.
. ./record-lib.sh
set -u
name=nest-3000-overflow
rec $name -m,4M -e intel_pt//u -- "$1/nest" 3000
perf --buildid-dir "$bdir" script -i $work/$name.data --itrace=cre --ns -F tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso >$work/$name.cr 2>$work/said ||
    fail "$name: perf script: $(head -n 5 $work/said)"
errors=$(grep -c 'instruction trace error' $work/$name.cr) || fail "$name: no overflow was injected"
others=$(grep 'instruction trace error' $work/$name.cr | grep -vic overflow) || true
[ "$others" = 0 ] || fail "$name: $others errors that are no overflows: $(grep 'instruction trace error' $work/$name.cr | grep -vi -m 3 overflow)"
echo "$name: $errors overflows, $(wc -l <$work/$name.cr) lines"
keep "$PTVM_OUT" $name data cr
