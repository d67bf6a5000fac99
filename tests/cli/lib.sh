# What the scripts of tests/cli and tests/golden share. STALLTRAP, BUILD and SOURCE are in the environment.
# Sourced; makes the folder $work, goes there, and removes it and every process of start() at the end.
# shellcheck shell=bash
export LC_ALL=C.UTF-8
unset DEBUGINFOD_URLS COLUMNS

# Runs the script that sources this before other work on the machine. The scheduler weighs sessions (autogroups) and nice within
# one, so it is started again in a session of its own.
go_first() { # "$@"
    if [ "$(ps -o sid= -p $$)" -ne $$ ]; then
        setsid --wait bash "$self" "$@"
        exit
    fi
    [ ! -w /proc/self/autogroup ] || echo -15 2>/dev/null >/proc/self/autogroup
    renice -n -15 -p $$ >/dev/null 2>&1
}

# Who comes first mounts it, as perf does: the order of tests must not decide which of them work.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
. "$SOURCE/tests/cli/perf_cache.sh"
. "$SOURCE/tests/cli/control.sh"

programs=$BUILD/tests/workloads
known_trees=$SOURCE/tests/workloads/programs
self=$(realpath "$0")
work=$(mktemp -d) || exit 1
cd "$work" || exit 1
started=()

cleanup() {
    local pid
    for pid in "${started[@]}"; do
        kill -TERM "$pid" 2>/dev/null && wait_end "$pid" 5
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    cd /
    mountpoint -q "$work/full" && umount "$work/full"
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# Prints why, and the given files' last lines, and ends the test.
fail() { # MESSAGE [FILE...]
    echo "FAILED: $1" >&2
    shift
    for file; do
        echo "--- $file" >&2
        tail -n 40 "$file" >&2
    done
    exit 1
}

start() { # COMMAND...: in the background; its pid is $pid. Ended at the latest with the test.
    "$@" &
    pid=$!
    started+=($pid)
}

running() { # PID: it is there and not a zombie
    [ -e "/proc/$1" ] && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

wait_end() { # PID SECONDS
    local i
    for ((i = 0; i < $2 * 20; i++)); do
        running "$1" || return 0
        sleep 0.05
    done
    return 1
}

wait_for() { # SECONDS COMMAND...: until it succeeds
    local i limit=$1
    shift
    for ((i = 0; i < limit * 20; i++)); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

lines() { # PATTERN FILE: how many; 0 when there is no file
    local n
    n=$(grep -cs -e "$1" "$2")
    echo "${n:-0}"
}

at_least() { # NUMBER PATTERN FILE
    [ "$(lines "$2" "$3")" -ge "$1" ]
}

# Starts `arm ARG...` and waits until it is armed. Its pid is $arm, its output arm.out and arm.err.
start_arm() {
    rm -f ready
    start "$STALLTRAP" arm --ready-fd 9 "$@" 9>ready >arm.out 2>arm.err
    arm=$pid
    wait_for 300 armed_or_gone || fail "arm $*: not armed after 300 s" arm.out arm.err
    grep -qx armed ready || fail "arm $*: ended before it was armed" arm.out arm.err
}

armed_or_gone() { grep -qxs armed ready || ! running "$arm"; }

end_of() { # PID SECONDS NAME: waits for its end; its exit status is $status
    wait_end "$1" "$2" || fail "$3 has not ended after $2 s" arm.out arm.err
    wait "$1"
    status=$?
}

# Starts the forwarder under its own load; its pid is $forwarder, its log forwarder.log. It stalls from SIGUSR1 on.
start_forwarder() { # OPTION...
    start "$programs/forwarder" --listen 127.0.0.1:0 --self-load --wait-usr1 --log forwarder.log "$@" 2>forwarder.err
    forwarder=$pid
    wait_for 300 at_least 1 '^open ' forwarder.log || fail "the forwarder does not forward" forwarder.log forwarder.err
}

# Some machines' kernels record nothing in the context of one or the other idle task: what a timer wakes there has no waking in
# anyone's trace. There a thread that yields to all others keeps the processor from being idle.
keep_unseen_cpus_awake() {
    local cpu
    for cpu in $(seq 0 $(($(nproc) - 1))); do
        perf record -q -o idle.data -C "$cpu" -e sched:sched_switch -- \
            taskset -c "$cpu" bash -c 'for n in 1 2 3 4 5; do sleep 0.02; done' >/dev/null 2>&1
        perf script -i idle.data -F comm 2>/dev/null | grep -q swapper ||
            start chrt -i 0 taskset -c "$cpu" bash -c 'while :; do :; done'
    done
}

# As fail, where a figure was compared whose tolerance is known; inconclusive where the machine was off by more than half of that since
# control_off was asked last.
fail_by_time() { # TOLERANCE_NS MESSAGE [FILE...]
    local off tolerance=$1
    off=$(control_off)
    shift
    if [ "$off" -gt $((tolerance / 2)) ]; then
        echo "inconclusive: the machine itself was off by $off ns, the tolerance is $tolerance ns: $1"
        exit 77
    fi
    fail "$@"
}

sql() { # DB SQL: one value, through our own query
    "$STALLTRAP" query "$1" "$2" --format csv | tail -n +2
}

perf_fields=event,tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso

# perf's listing of a snapshot's calls into the file perf.calls; it must not complain.
perf_calls() { # SNAPSHOT
    perf script --itrace=cre --ns -F $perf_fields -i "$1" >perf.calls 2>perf.err || fail "perf script ends with $?" perf.err
    [ ! -s perf.err ] || fail "perf script complains" perf.err
}
