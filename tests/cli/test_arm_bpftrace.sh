#!/bin/bash
# --on bpftrace:FILE: a script of the user's fires. Needs root.
. "$(dirname "$0")/arm_lib.sh"

start_target block 40 1000
start_control
cat >slow.bt <<END
#!/usr/bin/env bpftrace
BEGIN { printf("noise\\n no stalltrap\\n"); }
tracepoint:raw_syscalls:sys_enter /args->id == 0 && tid == $target/ { @start[tid] = nsecs; }
tracepoint:raw_syscalls:sys_exit /@start[tid]/ {
    if (nsecs - @start[tid] > 20000000) { printf("stalltrap tid=%d read took %d us, over at %llu\\n", tid, (nsecs - @start[tid]) / 1000, nsecs); }
    delete(@start[tid]);
}
END
# The same script, read by another program: when each line was there, and how many ns behind the read's end that was.
cat >witness.py <<'END'
import sys, time
for line in sys.stdin:
    if line.startswith("stalltrap"):
        over = int(line.split()[-1])
        print(over, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - over, flush=True)
END
mkfifo lines
bpftrace -q -B line slow.bt >lines 2>witness.err &
witness=$!
started+=("$witness")
python3 witness.py <lines >witness &
started+=($!)
wait_for "the witness" [ -s witness ]

run "a line that begins with stalltrap fires, the rest is the reason"
control_off >/dev/null
"$STALLTRAP" arm --source sample -p "$target" --on bpftrace:slow.bt --snapshots 3 --cooldown 200ms --timeout 60s -o bt >out 2>err
is "exit status" 0 $?
is "traps" 3 "$(grep -cE "^trap [123]: thread $target \"arm_target\" told by its bpftrace script: read took [0-9]+ us, over at [0-9]+\$" out)"
has "armed line" 'waiting for bpftrace:slow.bt' err
"$STALLTRAP" query bt.3.db "SELECT kind, tid, reason FROM stalls s JOIN meta m ON m.key = 'trigger_stall_id' AND m.value = s.id" --format csv >row
has "the record" "^bpftrace,$target,.*told by a bpftrace script: read took [0-9]+ us" row
# Each record lies where its script's line was there for another reader of the same, and the wait that the script told of is over right before.
cat >late.py <<'END'
import sqlite3, sys, time
off, tolerance = int(sys.argv[1]), 20_000_000
witness = dict(map(int, line.split()) for line in open("witness"))
# From the clock of the script to the wall's.
wall = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
bad = 0
for name in ("bt.1.db", "bt.2.db", "bt.3.db"):
    db = sqlite3.connect(name)
    meta = dict(db.execute("SELECT key, value FROM meta"))
    tid, start, reason = db.execute("SELECT tid, start_ns, reason FROM stalls WHERE id = ?", (meta["trigger_stall_id"],)).fetchone()
    over = int(reason.split()[-1])
    # The other bpftrace saw the end of the same read some microseconds earlier or later.
    seen = min(witness, key=lambda n: abs(n - over))
    assert abs(seen - over) < tolerance, f"{name}: the witness has not seen the read that was over at {over}"
    at = over + wall - meta["wall_offset_ns"] - meta["origin_perf_ns"]
    ends = [end for (end,) in db.execute("SELECT o.end_ns FROM offcpu o JOIN thread t ON t.id = o.thread_id WHERE tid = ? AND o.end_ns - o.start_ns > 20000000", (tid,))]
    told = start - at - witness[seen]
    waited = min((at - end for end in ends), key=abs, default=None)
    print(f"{name}: told {(start - at) / 1e6:.3f} ms behind the read's end, the witness {witness[seen] / 1e6:.3f} ms; the wait ended {waited} ns before it")
    bad += abs(told) > tolerance or waited is None or abs(waited) > tolerance
if bad and off > tolerance // 2:
    print(f"inconclusive: the machine itself was off by {off} ns, the tolerance is {tolerance} ns")
    sys.exit(77)
sys.exit(bad)
END
undecided=
python3 late.py "$(control_off)"
case $? in
0) ;;
77) undecided=yes ;;
*) fail "a record does not lie at its line" ;;
esac
"$STALLTRAP" report bt.3.db >report
has "the report" "told by a bpftrace script: read took" report

run "nothing is left running"
scripts() { # pids of bpftrace in this folder
    local pid
    for pid in $(pgrep -x bpftrace); do
        [ "$pid" = "$witness" ] || [ "$(readlink "/proc/$pid/cwd")" != "$PWD" ] || echo "$pid"
    done
}
is "bpftrace" "" "$(scripts)"
arm --no-decode -o left -p "$target" --on bpftrace:slow.bt --snapshots 0
children=$(pgrep -P "$arm")
[ -n "$(scripts)" ] || fail "the script that runs is not found"
[ "$(wc -w <<<"$children")" -ge 2 ] || fail "no child of arm runs the script"
kill -KILL "$arm"
wait_arm
for pid in $children; do
    case $(cat /proc/$pid/comm 2>/dev/null) in
    bpftrace | stalltrap-lines) wait_for "child $pid to end" eval "! alive $pid" ;;
    esac
done

run "a script in a folder far down"
far=$PWD/$(printf 'a-folder-with-a-name-of-some-length/%.0s' 1 2 3 4 5 6 7 8)
mkdir -p "$far"
cp slow.bt "$far"
"$STALLTRAP" arm --source sample -p "$target" --on "bpftrace:${far}slow.bt" --no-decode --timeout 60s -o far >out 2>err
is "exit status" 0 $?
has "a trap" "^trap 1: thread $target .*told by its bpftrace script: read took" out

run "watch measures the time between its lines"
"$STALLTRAP" watch -p "$target" --on bpftrace:slow.bt --timeout 1s >out 2>err
has "histogram" '^bpftrace:slow.bt: time between its lines: [1-9]' out

run "scripts that cannot run"
"$STALLTRAP" arm -p "$target" --on bpftrace:none.bt >out 2>err
is "no such file" 1 $?
has "message" 'none.bt: No such file' err
echo 'BEGIN { nonsense' >bad.bt
"$STALLTRAP" arm --source sample -p "$target" --on bpftrace:bad.bt >out 2>err
is "bad script" 1 $?
has "bpftrace's own words" 'syntax error' err
"$STALLTRAP" arm -p "$target" --on 'bpftrace' >out 2>err
is "no script" 2 $?
has "message" "'bpftrace' needs the name of a bpftrace script" err

[ -z "$undecided" ] || [ "$failures" != 0 ] || exit 77
summary
