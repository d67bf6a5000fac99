#!/bin/bash
# report names the cause of a stall: for each rule a workload that has it, and one that nearly has it. Needs root: BPF programs are loaded.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
program=$programs/causes
of_the_machine='ready without a CPU|CPU taken by other work' # what a busy machine adds
groups=()

remove_groups() {
    local group
    for group in "${groups[@]}"; do
        rmdir "$group" 2>/dev/null
    done
}
trap 'cleanup; remove_groups' EXIT

# group CONTROLLER FILE VALUE...: a control group of that controller (v1 or v2) in $group, or no group where the machine has none
group() {
    local controller=$1 v2=/sys/fs/cgroup
    group=
    if [ -d "/sys/fs/cgroup/$controller" ]; then
        group=/sys/fs/cgroup/$controller/stalltrap.$$
    elif grep -qw "$controller" $v2/cgroup.controllers 2>/dev/null; then
        echo "+$controller" >$v2/cgroup.subtree_control 2>/dev/null
        group=$v2/stalltrap.$$
    fi
    [ -n "$group" ] && mkdir "$group" || return 1
    groups+=("$group")
}

# run_mode TRIGGER MODE [ARG]: runs the workload (its first process in $group), and puts the cause of three stalls into the file causes
run_mode() {
    local trigger=$1 i
    shift
    rm -f t.* report.* causes
    start "$program" "$@" 2>/dev/null
    target=$pid
    disown "$target" # bash then says nothing when it is killed
    wait_for 10 grep -qx causes "/proc/$target/comm" || fail "causes $1 does not run"
    sleep 0.3 # it has started its helpers, which stay out of the group
    [ -z "${group:-}" ] || echo "$target" >"$group/cgroup.procs" || fail "no way into $group"
    "$STALLTRAP" arm --source "${source:-sample}" -p "$target" --on "$trigger" --warm-up 200ms --snapshots ${snapshots:-3} --timeout 10s -o t >arm.out 2>arm.err
    children=$(pgrep -P "$target")
    kill -KILL "$target" $children
    wait_end "$target" 5
    [ -s t.1.db ] || fail "$1: nothing fired" arm.out arm.err
    for ((i = 1; i <= ${snapshots:-3}; i++)); do
        [ ! -s t.$i.db ] || "$STALLTRAP" report t.$i.db >report.$i 2>&1 || fail "report ends with $?" report.$i
    done
    grep -h '^  cause ' report.? >causes
}

# causes_of TRIGGER MODE [ARG]: once more where nothing but other work on the machine caused the stalls of a workload that waits
causes_of() {
    local try
    for try in 1 2 3 4; do
        run_mode "$@"
        [[ $1 != *state=preempted* ]] && ! grep -Evq '^  cause  *(ready without a CPU|CPU taken)' causes || return 0
        echo "   the machine was busy: once more"
    done
}

# has TRIGGER CAUSE MODE [ARG]: each report says so. Other work on the machine may make a stall of its own, but not in each run.
has() {
    local trigger=$1 cause=$2 try
    shift 2
    echo "-- $1 ${2:+($2) }has: $cause"
    for try in 1 2 3 4; do
        causes_of "$trigger" "$@"
        grep -Eq "^  cause  *$cause" causes || fail "$1: not '$cause'" causes report.1
        grep -Ev "^  cause  *($cause|${others:-$of_the_machine})" causes >others || return 0
        echo "   also: $(cat others)"
    done
    fail "$1: each time another cause beside '$cause'" causes
}

# nearly TRIGGER CAUSE MODE [ARG]: it says something else, or nothing
nearly() {
    local trigger=$1 cause=$2
    shift 2
    echo "-- $1 ${2:+($2) }has not: $cause"
    causes_of "$trigger" "$@"
    ! grep -Eq "^  cause  *$cause" causes || fail "$1: '$cause'" causes report.1
}

# silent MODE [ARG]: of an exchange that goes on quickly the two triggers of the manual tell nothing. A machine that has much else to do
# may stall it too, but not each time.
silent() {
    local try
    echo "-- $* fires nothing"
    for try in 1 2 3 4; do
        rm -f t.*
        start "$program" "$@" 2>/dev/null
        target=$pid
        disown "$target"
        wait_for 10 grep -qx causes "/proc/$target/comm" || fail "causes $1 does not run"
        "$STALLTRAP" arm --source sample -p "$target" --on 'socket>20ms' --on 'offcpu>20ms,idle=yes' --warm-up 200ms --no-decode --timeout 1500ms \
            -o t >arm.out 2>arm.err
        status=$?
        children=$(pgrep -P "$target")
        kill -KILL "$target" $children
        wait_end "$target" 5
        [ $status -eq 4 ] && break
    done
    [ $status -eq 4 ] || fail "$*: fires each time" arm.out
    # It did its work meanwhile: an exchange, and a rest of 5 ms, at a time.
    [ "$(sed -n 's/^offcpu>.*: \([0-9,]*\) measured$/\1/p' arm.err | tr -d ,)" -ge 50 ] || fail "$*: nothing was measured" arm.err
}

waits='offcpu>20ms,idle=yes,state=sleeping'
disk='offcpu>50us,state=blocked'

has "$waits" 'delayed ACK against Nagle: the socket to 127\.0\.0\.1:[0-9]* .*tcp_nagle_test.*tcp_delack_timer.*TCP_NODELAY' nagle
has 'socket>20ms' 'delayed ACK against Nagle: 48 bytes to 127\.0\.0\.1:[0-9]* lay unsent for .*TCP_NODELAY' nagle
has 'offcpu>20ms,idle=yes' 'delayed ACK against Nagle: the socket to 127\.0\.0\.1:[0-9]* ' nagle
silent nagle nodelay
silent one-write
nearly "$waits" 'delayed ACK' slow-server
grep -q 'slow peer: 127\.0\.0\.1:[0-9]*, process [0-9]* "server", answered after' causes || fail "slow-server: not the peer" causes
nearly "$waits" 'slow peer' requests
grep -q 'usually idle' causes || fail "requests: not idle" causes
waits_in_send='offcpu>5ms,state=sleeping'
has "$waits_in_send" 'slow downstream: sendto waited for room' slow-reader
nearly "$waits_in_send" 'slow downstream' full-pipe
has "$waits" 'name look-up: .* name server 127\.53\.0\.53:53' names
nearly "$waits" 'name look-up' datagrams
has "$waits" 'own time-out: the program asked to sleep for .* in poll' sleep # without a descriptor
nearly "$waits" 'idle' mutex
grep -q 'lock contention: held by thread [0-9]* "holder" in .*sort_the_table()' causes || fail "mutex: not the holder, or not what it did" causes report.1
nearly "$waits" 'lock' barrier
nearly "$waits" 'lock' semaphore

has "$disk" 'disk write \(fsync\): .* of /.*/table\.dat' fsync .
nearly "$disk" 'disk write' read .
grep -q 'disk read: .*cold\.dat' causes || fail "read: not the disk" causes
nearly "$waits" 'disk' full-pipe
grep -q 'slow reader of a pipe: there was no room in the pipe\|slow reader of a pipe: there was no room in pipe:' causes || fail "full-pipe: not its reader" causes
has "$waits" 'slow writer of a pipe: nothing came through (pipe:.*|the pipe) for .*; then thread [0-9]* "[^"]*" wrote' pipe
nearly "$waits" 'slow (reader|writer)' slow-server
has "$disk" 'log write: .* the log file /.*/server\.log' log .
nearly "$disk" 'log write' write-through .
! grep -q 'interrupt load' causes || fail "write-through: the disk's interrupts are not why it waits" causes
grep -q 'disk write (pwrite64)' causes || fail "write-through: not the disk" causes
has "$waits" 'log write: .* the standard error .*: a pipe whose reader is slow' full-pipe stderr
has "$disk" 'page fault from disk: .* in touch_pages\(\)' fault .
nearly "$disk" 'page fault' read .
nearly "$disk" 'disk read' fault .
! grep -h 'woken by softirq HI' report.* || fail "fault: nothing here wakes by tasklets" report.1
has 'busy>30ms' 'stopped: SIGSTOP from thread [0-9]* "stopper" stopped the thread for .*; thread [0-9]* "stopper" let it go on' stopped
nearly "$waits" 'stopped' sleep

if grep -Eq 'virtio[0-9]+-req|nvme|ahci|ata_piix|xhci' /proc/interrupts; then
    has 'irq>1us' 'interrupt load: an interrupt handler held the CPU for .*: [a-z]' interrupts .
else
    echo "this machine's disk makes no interrupts: interrupt load is not tried"
fi

ready='offcpu>20ms,state=preempted'
has "$ready" 'CPU taken by other work: .*: thread [0-9]* "hog" got its CPU' hog
nearly "$ready" 'softirq load: .*"ksoftirqd/9"' hog ksoftirqd/9 # the kernel's own may get it on a busy machine
grep -q 'CPU taken by other work: .*: thread [0-9]* "ksoftirqd/9" got its CPU' causes || fail "another ksoftirqd: not told" causes
if [ "$(nproc)" -gt 1 ] && [ -e /sys/class/net/lo/queues/rx-0/rps_cpus ]; then
    has 'softirq>2ms' 'softirq load: a softirq held the CPU for .*: NET_RX' packets
    echo "-- packets has: softirq load, by ksoftirqd"
    for try in 1 2 3; do # other work takes the CPU too
        snapshots=9 causes_of 'runq>5ms,state=preempted' packets
        ! grep -q 'softirq load: .*: thread [0-9]* "ksoftirqd/1" had its CPU' causes || break
    done
    grep -q '^  cause  *softirq load: .*: thread [0-9]* "ksoftirqd/1" had its CPU' causes || fail "packets: not ksoftirqd" causes report.1
    ! grep '^  cause  *CPU taken .*ksoftirqd/1' causes | grep -qv 'the longest of' || fail "ksoftirqd is told as other work" causes
else
    echo "this machine hands no packets to another processor: softirq load is not tried"
fi
if group cpu; then
    if [ -e "$group/cpu.cfs_quota_us" ]; then echo 5000 >"$group/cpu.cfs_quota_us"; else echo "5000 100000" >"$group/cpu.max"; fi
    # A busy machine takes its CPU too; of such a stall that was over before it was noticed nobody can tell whether its group was throttled.
    throttled='cgroup CPU throttling: .* may use 5\.00 ms of CPU time every 100 ms'
    for trigger in "$ready" 'runq>20ms'; do
        snapshots=9 others="$of_the_machine|not known \(a trigger runq" has "$trigger" "$throttled" compute
    done
    if [ -e "$group/cpu.cfs_quota_us" ]; then echo 400000 >"$group/cpu.cfs_quota_us"; else echo "400000 100000" >"$group/cpu.max"; fi
    nearly "$ready" 'cgroup' hog
else
    echo "this machine has no cpu controller: throttling is not tried"
fi
if group memory; then
    if [ -e "$group/memory.limit_in_bytes" ]; then echo 16M >"$group/memory.limit_in_bytes"; else echo 16M >"$group/memory.max"; fi
    # Its file is cut off and written anew each time.
    has 'offcpu>500us,state=blocked' '(memory reclaim: .* of its control group, which is at its limit|disk write \(ftruncate\))' cache .
    grep -q 'memory reclaim' causes || fail "cache: no reclaim" causes
    if [ -e "$group/memory.limit_in_bytes" ]; then echo 1G >"$group/memory.limit_in_bytes"; else echo 1G >"$group/memory.max"; fi
    nearly "$disk" 'memory' write-through .
else
    echo "this machine has no memory controller: reclaim is not tried"
fi
group=

# Of each call with step: the two functions that wrote.
source=step has "$waits" 'delayed ACK against Nagle: .*; written by send_header\(\) and send_body\(\);' nagle

# Each rule has a word in the documentation.
for rule in "$SOURCE"/viewer/causes/*.sql; do
    name=$(basename "$rule" .sql)
    grep -q "$name" "$SOURCE/docs/causes.md" || fail "docs/causes.md does not tell of $name"
    head -1 "$rule" | grep -q '^-- ' || fail "$name.sql does not say what it is"
done
exit 0
