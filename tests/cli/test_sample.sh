#!/bin/bash
# Where there is no Intel PT: a forwarder under load stalls for a lock; arm takes samples by itself, and the database has the stack it
# waited in down to the kernel, and who woke it. perf shows the same samples. What rings cannot hold is a gap.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
source=auto
[ ! -e /sys/bus/event_source/devices/intel_pt ] || source=sample

same_as_perf() { # SNAPSHOT
    "$STALLTRAP" decode --dump samples "$1" >ours || fail "decode --dump samples $1"
    perf report -D -i "$1" 2>/dev/null | awk -f "$SOURCE/tests/cli/perf_samples.awk" | sort >perfs
    sort ours | cmp - perfs || fail "$1: perf shows other samples" ours perfs
    [ "$(wc -l <ours)" -gt "$2" ] || fail "$1: $(wc -l <ours) samples, expected more"
}

keep_unseen_cpus_awake
start_forwarder --load-connections 2 --load-rate 4000000 --stall lock:40:1000
start_arm --source $source -p $forwarder --on 'offcpu>35ms' --timeout 60s -o x
kill -USR1 $forwarder
end_of $arm 90 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
[ $source = sample ] || grep -q '^armed: sample (no Intel PT here' arm.err || fail "it does not say why it samples" arm.err
grep -q '^trap 1: thread .* off-CPU .* in futex, woken by thread .*lock-holder' arm.out || fail "no trap" arm.out
same_as_perf x.1.data 20
[ "$(sql x.1.db "SELECT group_concat(value) FROM meta WHERE key = 'source'")" = sample ] || fail "meta.source"
[ "$(sql x.1.db "SELECT value > 0 FROM meta WHERE key = 'sample_period_ns'")" = 1 ] || fail "meta.sample_period_ns"
# The frames that were there throughout the stall, the outermost first.
sql x.1.db "SELECT c.function FROM calls c, stalls s, meta m WHERE m.key = 'trigger_stall_id' AND s.id = m.value AND c.thread_id = s.thread_id
    AND c.start_ns <= s.start_ns AND c.end_ns >= s.start_ns + s.duration_ns - 1000000 AND c.flags & 32 ORDER BY c.depth" >frames
expected='main run run_workers event_loop handle_event relay pump maybe_stall run_stall run_lock wait_for_lock'
[ "$(grep -xE "${expected// /|}" frames | tr '\n' ' ')" = "$expected " ] || fail "the stack it waited in" frames
grep -q '_sys_futex$' frames || fail "the system call is not in the stack" frames
[ "$(sql x.1.db "SELECT count(*) FROM stalls WHERE waker LIKE '%lock-holder%' AND duration_ns > 30000000")" -ge 1 ] || fail "the waker"
# Each wait that was recorded from begin to end begins with a mark of the state, and ends with one wake-up, which may come as soon
# as the state is told: before the switch has ended. The trigger, which measures by itself, saw the same waking. CPUs begin to tell
# one after the other, and their rings of wakings, which newborn threads of others fill too, may be overwritten; after the freeze
# only the side-band goes on.
sql x.1.db "WITH first AS (SELECT min(time_ns) AS time_ns FROM mark WHERE name IN ('offcpu', 'woken') GROUP BY name, iif(name = 'woken', cpu, 0)),
    t AS (SELECT *, (SELECT max(k.time_ns) FROM mark k WHERE k.thread_id = o.thread_id AND k.name = 'offcpu' AND k.time_ns <= o.start_ns) AS state_ns,
        coalesce((SELECT max(p.end_ns) FROM offcpu p WHERE p.thread_id = o.thread_id AND p.end_ns < o.start_ns), 0) AS last_ns FROM offcpu o),
    w AS (SELECT t.*, (SELECT count(*) FROM mark k WHERE k.thread_id = t.thread_id AND k.name = 'offcpu' AND k.time_ns > last_ns
            AND k.time_ns <= t.start_ns) AS states,
        (SELECT count(*) FROM mark k WHERE k.thread_id = t.thread_id AND k.name = 'woken' AND k.time_ns > max(last_ns, state_ns - 20000)
            AND k.time_ns <= t.end_ns) AS wakings
    FROM t WHERE last_ns > (SELECT max(time_ns) FROM first) AND NOT preempted
        AND end_ns < (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'freeze_asked_ns'))
    SELECT count(*), sum(states = 1), sum(wakings = 1) FROM w" >waits
IFS=, read -r waits states wakings <waits
echo "$waits waits, $states with their state, $wakings with their waking"
[ "$waits" -ge 1 ] && [ "$states" -eq "$waits" ] && [ "$wakings" -eq "$waits" ] || fail "not every wait has its state and its waking" waits arm.out
[ "$(sql x.1.db "SELECT count(*) FROM stall s JOIN mark k ON k.thread_id = s.thread_id AND k.name = 'woken' AND abs(k.time_ns - s.wake_ns) < 1000000
    AND k.detail LIKE 'by thread%lock-holder% in futex' WHERE s.id = (SELECT value FROM meta WHERE key = 'trigger_stall_id')")" = 1 ] || fail "the trigger's waking is no mark"
"$STALLTRAP" view x.1.db --size 110x26 --screen - | head -1 | grep -q 'SAMPLED each .*: short calls are not there' || fail "view does not say it"

# Every system call, where it is asked for: as many as strace counts, each with its exit but those that end the thread.
"$STALLTRAP" arm --source sample --syscalls -q -o calls -- /bin/echo x >out 2>arm.err || fail "arm ends with $?" arm.err
strace -f -o strace.out /bin/echo x >out || fail "strace"
[ "$(sql calls.1.db "SELECT count(*) FROM mark WHERE name = 'syscall'")" -eq "$(($(grep -c '(' strace.out) - 1))" ] || fail "not the system calls that strace sees" strace.out
[ "$(sql calls.1.db "SELECT count(*) FROM mark WHERE name = 'sysret' AND detail LIKE 'write = 2'")" = 1 ] || fail "no write of two bytes"
same_as_perf calls.1.data 1

# A ring that is too small, and a second snapshot right behind the first: both are told of.
start bash -c 'while :; do :; done'
busy=$pid
start_arm --source sample --freq 5000 --ring 16K -p $busy -o small
sleep 0.5
for n in 1 2; do
    kill -USR2 $arm
    wait_for 30 test -s small.$n.db || fail "no snapshot $n" arm.out arm.err
done
kill -TERM $arm
end_of $arm 30 arm
[ "$(sql small.1.db "SELECT count(*) FROM gaps WHERE reason = 'overwritten'")" = 1 ] || fail "what was overwritten is no gap"
# The target may be off its CPU while the rings are copied: then nothing is lost, and the next snapshot has to show it.
start_arm --source sample --freq 10000 --ring 16M -p $busy -o twice
lost=0
for ((n = 1; n <= 12 && lost < 1; n++)); do
    kill -USR2 $arm
    wait_for 30 test -s twice.$n.db || fail "no snapshot $n" arm.out arm.err
    lost=$(sql twice.$n.db "SELECT count(*) FROM gaps WHERE reason = 'lost' AND detail LIKE '% samples %' AND end_ns >= start_ns")
done
kill -TERM $arm
end_of $arm 30 arm
[ "$lost" -ge 1 ] || fail "what was lost while the rings were copied is no gap"
same_as_perf twice.2.data 100

# A thousand threads: rings of CPUs, and threads that are born while armed are in them.
cat >many.py <<'EOF'
import threading, time
def work():
    while True:
        time.sleep(0.2)
threading.stack_size(65536)
for i in range(1000):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(100)
EOF
start python3 many.py >many.out
many=$pid
wait_for 60 grep -q ready many.out || fail "no threads"
start_arm --source sample -p $many -o many
grep -q ' a CPU, ' arm.err || fail "rings are not of CPUs" arm.err
sleep 1
kill -INT $arm
end_of $arm 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
threads=$(sql many.1.db "SELECT count(DISTINCT thread_id) FROM calls")
[ "$threads" -gt 990 ] || fail "$threads threads have calls, expected a thousand" arm.err
same_as_perf many.1.data 900
