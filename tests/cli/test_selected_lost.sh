#!/bin/bash
# The recorder is stopped while its target switches so often that the rings of context switches are written over many times: what was lost is
# a gap, and no wait is told to have lasted over it. The target's own clock says how long its longest wait was.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF needs root"; exit 77; }

cat >target.py <<'END'
import os, sys, time

ask, answer = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(ask[1])
    while os.read(ask[0], 1):
        os.write(answer[1], b"x")
    os._exit(0)

def round_trips(n):
    times = [time.monotonic_ns()]
    for _ in range(n):
        os.write(ask[1], b"x")
        os.read(answer[0], 1)
        times.append(time.monotonic_ns())
    return times[0], times[-1], max(b - a for a, b in zip(times, times[1:]))

print("ready", os.getpid(), child, flush=True)
for n in (100, 60000, 100):
    sys.stdin.readline()
    print("round", *round_trips(n), flush=True)
sys.stdin.readline()
END

has_done() { [ "$(lines '^round' out)" -ge "$1" ]; }

round() { # N
    echo >&8
    wait_for 300 has_done "$1" || fail "the target does not go on" out
}

mkfifo go
start bash -c 'exec python3 target.py <go >out'
exec 8>go
wait_for 120 grep -qs '^ready' out || fail "the target does not begin"
read -r _ target child <out
start_arm --source sample -o t -p "$target,$child"
round 1
kill -STOP "$arm"
round 2
kill -CONT "$arm"
round 3
kill -INT "$arm"
end_of "$arm" 300 arm
[ "$status" -eq 0 ] || fail "arm ends with $status" arm.out arm.err
grep -qE '^armed: .* a CPU, [0-9]+ CPUs?, 2 threads;' arm.err || fail "no rings of CPUs" arm.err
sql t.1.db "SELECT reason, detail, start_ns, end_ns FROM gap" >gaps
grep -q 'side-band records did not fit' gaps || fail "no gap where switches were lost" gaps arm.err

# The clock is the target's too.
read -r begun ended longest < <(awk '/^round/ && ++n == 2 { print $2, $3, $4 }' out)
origin=$(sql t.1.db "SELECT value FROM meta WHERE key = 'origin_perf_ns' AND (SELECT value FROM meta WHERE key = 'clock') = 'monotonic'")
[ -n "$origin" ] || fail "the clock is not that of BPF programs"
told=$(sql t.1.db "SELECT max(min(end_ns + $origin, $ended) - max(start_ns + $origin, $begun)) FROM offcpu")
echo "of $((ended - begun)) ns the longest wait took $longest, the longest that is told $told"
[ "$told" -le "$((longest + 1000000))" ] || fail "a wait is told to have lasted over what was lost" gaps out
