#!/bin/sh
# What the kernel saw of each stall: every off-CPU period over 5 ms of the forwarder's threads, by bpftrace.
# usage: offcpu_truth.sh FOLDER_OF_THE_PROGRAMS [KIND:MS...]
# Idle waits (clock_nanosleep, epoll_wait, poll, wait4, futex FUTEX_WAIT_BITSET) are printed as idle. Needs root and bpftrace.
set -u
bin=${1:?usage: offcpu_truth.sh FOLDER_OF_THE_PROGRAMS [KIND:MS...]}
shift
[ $# -gt 0 ] || set -- fsync:40 lock:40 slowsend:40 nagle:40 busy:40 idle:40 forever:0
count=${COUNT:-10}
work=$(mktemp -d) || exit 1
tracer= forwarder=
cleanup() {
    [ -n "$forwarder" ] && kill "$forwarder" 2>/dev/null
    [ -n "$tracer" ] && stop_tracer
    wait
    rm -rf "$work"
}
# bpftrace can miss a signal that comes just before it waits for events.
stop_tracer() {
    while kill -INT "$tracer" 2>/dev/null; do
        sleep 0.2
    done
    wait "$tracer"
    tracer=
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing || exit 1

cat >"$work/offcpu.bt" <<'BT'
BEGIN { printf("ready\n"); }
tracepoint:raw_syscalls:sys_enter /pid == $1/ { @call[tid] = args->id; @op[tid] = args->args[1]; }
tracepoint:raw_syscalls:sys_exit /pid == $1/ { delete(@call[tid]); delete(@op[tid]); }
tracepoint:irq:softirq_entry { @softirq[cpu] = (uint64)args->vec + 1; }
tracepoint:irq:softirq_exit { @softirq[cpu] = (uint64)0; }
tracepoint:timer:timer_expire_entry { @timer[cpu] = (uint64)args->function; @timer_at[cpu] = nsecs; }
tracepoint:sched:sched_waking /@since[args->pid]/ {
    @waker[args->pid] = comm;
    @wake_softirq[args->pid] = @softirq[cpu];
    @wake_timer[args->pid] = nsecs - @timer_at[cpu] < 2000000 ? @timer[cpu] : (uint64)0;
}
tracepoint:sched:sched_switch {
    if (pid == $1) {
        @since[args->prev_pid] = nsecs;
        @in[args->prev_pid] = @call[args->prev_pid];
        @stack[args->prev_pid] = kstack(4);
    }
    if (@since[args->next_pid]) {
        $ms = (nsecs - @since[args->next_pid]) / 1000000;
        $call = @in[args->next_pid];
        $bitset = $call == 202 && (@op[args->next_pid] & 127) == 9;
        if ($ms >= 5) {
            printf("off %d us tid %d %s syscall %d %s by %s softirq %d timer %s%s\n",
                (nsecs - @since[args->next_pid]) / 1000, args->next_pid, args->next_comm, $call,
                $call == 232 || $call == 230 || $call == 7 || $call == 61 || $bitset ? "idle" : "STALL", @waker[args->next_pid],
                (int64)@wake_softirq[args->next_pid] - 1, ksym(@wake_timer[args->next_pid]), @stack[args->next_pid]);
        }
        delete(@since[args->next_pid]);
    }
}
END {
    clear(@call); clear(@op); clear(@softirq); clear(@timer); clear(@timer_at); clear(@since); clear(@in);
    clear(@stack); clear(@waker); clear(@wake_softirq); clear(@wake_timer);
}
BT

for stall; do
    "$bin/forwarder" --listen 127.0.0.1:0 --self-load --wait-usr1 --stall "$stall:60" --stall-count "$count" \
        --log "$work/log" &
    forwarder=$!
    bpftrace "$work/offcpu.bt" "$forwarder" >"$work/out" 2>"$work/err" &
    tracer=$!
    for _ in $(seq 100); do
        grep -q '^ready' "$work/out" && break
        sleep 0.1
    done
    grep -q '^ready' "$work/out" || { cat "$work/err" >&2; exit 1; }
    kill -USR1 "$forwarder"
    for _ in $(seq 300); do
        [ "$(grep -c '^stall ' "$work/log")" -ge "$count" ] && break
        sleep 0.1
    done
    kill "$forwarder"
    wait "$forwarder"
    status=$?
    forwarder=
    stop_tracer
    echo "== $stall: exit $status, $(grep -c '^stall ' "$work/log") in the log:" \
        "$(sed -n 's/^stall .*duration_ns=\([0-9]*\)/\1/p' "$work/log" | awk '{printf "%.1f ", $1 / 1e6}')ms"
    echo "   off-CPU over 5 ms and not idle:" \
        "$(awk '/STALL/ {printf "%.1f(%s) ", $2 / 1000, $8} END {print "ms(syscall)"}' "$work/out")"
    grep -A5 STALL "$work/out" | grep -m1 -A5 'by'
    awk '/STALL/ {sub(/^.* by /, "by "); count[$0]++} END {for (line in count) print "   " count[line] " times " line}' "$work/out"
done
