#!/bin/bash
# Events are CPU-wide, and what is recorded of them is the target's: as root, `sample` has every switch of a thread that is born later and
# of a process that is forked later, as many as the kernel counts, and nothing of a neighbour that does the same. Then with rings a thread.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF needs root"; exit 77; }

cat >target.py <<'EOF'
import os, sys, threading, time

def waits(name):
    ask, answer = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(ask[1])
        while os.read(ask[0], 1):
            time.sleep(0.001)
            os.write(answer[1], b"x")
        os._exit(0)
    def count():
        return int(next(line.split()[1] for line in open(f"/proc/thread-self/status") if line.startswith("voluntary")))
    before = count()
    for _ in range(60):
        os.write(ask[1], b"x")
        os.read(answer[0], 1)
    print(name, threading.get_native_id(), before, count(), flush=True)
    os.close(ask[1])
    os.wait()

print("ready", os.getpid(), flush=True)
sys.stdin.readline()
thread = threading.Thread(target=waits, args=["thread"])
thread.start()
thread.join()
if os.fork() == 0:
    waits("process")
    os._exit(0)
os.wait()
print("done", flush=True)
sys.stdin.readline()
EOF

record() { # NAME OPTION...
    local name=$1
    shift
    rm -f go out
    mkfifo go
    start bash -c 'exec python3 target.py <go >out'
    exec 8>go
    wait_for 120 grep -qs '^ready' out || fail "the target does not begin"
    target=$(awk '/^ready/ { print $2 }' out)
    start_arm --source sample --every-switch -o "$name" -p "$target" "$@"
    python3 target.py <<<$'\n\n' >neighbour || fail "the neighbour" neighbour
    echo >&8
    wait_for 300 grep -qs '^done' out || fail "the target does not end" out
    kill -INT "$arm"
    end_of "$arm" 300 arm
    [ "$status" -eq 0 ] || fail "arm ends with $status" arm.out arm.err
    exec 8>&-
}

# Between two readings of the kernel's count lie all that came since the first; what the readings themselves wait for may be there too.
all_there() { # NAME WHO
    local tid before after there
    read -r _ tid before after < <(grep "^$2 " out)
    there=$(sql "$1.1.db" "SELECT count(*) FROM offcpu o JOIN thread t ON t.id = o.thread_id WHERE t.tid = $tid AND NOT o.preempted")
    echo "$1: $2 $tid waited $((after - before)) times by the kernel's count, $there in the trace"
    [ "$((after - before))" -gt 0 ] && [ "$there" -ge "$((after - before))" ] && [ "$there" -le "$((after + 5))" ] || fail "$1: not the waits of the $2" out arm.err
}

record selected
grep -qE '^armed: .* a CPU, [0-9]+ CPUs?, 1 thread;' arm.err || fail "no rings of CPUs" arm.err
all_there selected thread
all_there selected process
while read -r who tid _; do
    case $who in thread | process) ;; *) continue ;; esac
    [ "$(sql selected.1.db "SELECT count(*) FROM offcpu o JOIN thread t ON t.id = o.thread_id WHERE t.tid = $tid")" = 0 ] || fail "waits of a neighbour's $who" neighbour
done <neighbour
[ "$(sql selected.1.db "SELECT count(DISTINCT p.pid) FROM process p JOIN thread t ON t.process_id = p.id JOIN offcpu o ON o.thread_id = t.id")" = 4 ] ||
    fail "other processes than the target and its three children" arm.err
record threads --rings thread
grep -q '^armed: .* a thread, 1 thread' arm.err || fail "no rings of threads" arm.err
all_there threads thread

# Nothing of what is switched while arm begins, or while a snapshot is taken, is told as lost.
start python3 "$SOURCE/tests/cli/pingpong.py"
pingpong=$pid
for round in 1 2; do
    start_arm --source sample -o "round$round" -p "$pingpong" --on 'offcpu>30s'
    "$STALLTRAP" snap "$arm" >snap.out 2>&1 || fail "snap" snap.out arm.err
    sleep 2.5 # its looks at what was lost are a second apart
    kill -INT "$arm"
    end_of "$arm" 300 arm
    [ "$status" -eq 0 ] || fail "arm ends with $status" arm.out arm.err
    grep -q 'could not be recorded' arm.err && fail "losses that are none" arm.err
done
exit 0
