#!/bin/bash
# A kind of trigger on the running kernel: a stall ten times its threshold fires, and is told with its thread, its system call and its
# duration. The workload notes each of its stalls from outside, so what is told must lie within what it noted, on any machine and beside
# any work; a run that tells of no whole stall of it says nothing, and there is another.
# usage: kinds.sh NAME [SOURCE] | kinds.sh all (whether each kind of trigger has a row) | kinds.sh rows
set -u
. "$SOURCE/tests/cli/lib.sh"
# There are no spaces in a trigger, and there may be in the path of a clone.
workload=$work/kinds
cp "$programs/kinds" "$workload"
cp "$BUILD/tests/user.bpf.o" .

# NAME MODE TRIGGER CONDITION: of `kinds MODE`, TRIGGER tells a row of `stalls` for which CONDITION holds; attr('KEY') is an attribute,
# CHILD the process that the workload made; KINDS_MORE has rows of who runs this. NAME is the kind, and what tells its rows apart behind a dot.
rows() {
    cat <<END
offcpu sleep offcpu>30ms,idle=yes state = 'sleeping' AND syscall = 'clock_nanosleep'
syscall sleep syscall:clock_nanosleep>30ms syscall = 'clock_nanosleep'
func sleep func:$workload!slow_function>30ms attr('arg0') = 12
call sleep call:$workload!slow_function attr('arg0') = 12
func.kernel sleep func:kernel!__x64_sys_clock_nanosleep>30ms attr('ret') = 0
call.kernel sleep call:kernel!__x64_sys_clock_nanosleep true
busy compute busy>30ms,idle=list true
runq hog runq>30ms attr('next') LIKE 'thread CHILD %'
socket unread socket>30ms,side=unread attr('bytes') = 1
socket.unsent unsent socket>30ms,side=unsent attr('side') = 'unsent'
socket.queue unaccepted socket>30ms attr('side') = 'unaccepted' AND attr('connections') = 1 AND attr('local') LIKE '127.0.0.1:%'
quiet silence quiet:$workload!beat>30ms true
softirq packets softirq:NET_RX>1us attr('softirq') = 'NET_RX'
tracepoint hit tracepoint:syscalls:sys_enter_getppid attr('__syscall_nr') = 110
usdt hit usdt:$workload:st_test:beat,if=arg0==3 attr('arg0') = 3 AND attr('arg1') = 7
bpf hit bpf:user.bpf.o attr('color') = 'blue'
${KINDS_MORE:-}
END
}

# Kinds without a row, and why.
without() {
    echo "irq no device of which it is known that it interrupts here: unit_triggers_irq, unit_triggers_truth"
    echo "bpftrace takes as long to start as it likes: cli_arm_bpftrace"
}

if [ "$1" = rows ]; then # for matrix.sh
    workload=WORKLOAD
    rows
    exit 0
fi
if [ "$1" = all ]; then
    "$STALLTRAP" watch -p $$ --on nonsense 2>err
    sed -n 's/.*(there is: \(.*\)).*/\1/p' err | tr -d ' ' | tr , '\n' | sort >kinds
    [ "$(wc -l <kinds)" -ge 13 ] || fail "the kinds of triggers are not found" err
    { rows | cut -d' ' -f1 | cut -d. -f1; without | cut -d' ' -f1; } | sort -u >known
    comm -23 kinds known >missing
    [ ! -s missing ] || fail "these kinds have no row, and no reason" missing
    exit 0
fi

[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }
source=${2:-sample}
read -r _ mode trigger condition < <(rows | grep "^$1 ") || fail "no row '$1'"
start "$workload" "$mode" >noted
target=$pid
if [ "$mode" = hog ]; then
    wait_for 60 pgrep -P "$target" >child || fail "the workload has no child"
    condition=${condition//CHILD/$(cat child)}
    wait_for 60 test -s noted || running "$(cat child)" || { echo "skipped: SCHED_FIFO is not to be had here"; exit 77; }
fi

for try in 1 2 3 4 5 6; do
    rm -rf x.*
    # A stall that goes on when the trigger is armed counts from then on.
    start_arm --source "$source" -p "$target" --on "$trigger" --warm-up 500ms -o x
    end_of "$arm" 600 "arm --on $trigger"
    [ $status = 0 ] || fail "arm --on $trigger ends with $status" arm.out arm.err
    grep -q '^trap 1: ' arm.out || fail "$trigger: no line about the trap" arm.out
    echo "try $try: $(grep '^trap' arm.out)"
    grep '^armed' arm.err
    python3 "$SOURCE/tests/cli/check_kind.py" x.1.db noted "${1%.*}" "$trigger" "$condition"
    case $? in
    0) exit 0 ;;
    2) ;;
    *) fail "$trigger" arm.out arm.err noted ;;
    esac
done
fail "$trigger: no whole stall of the workload was told in six runs" arm.out arm.err noted
