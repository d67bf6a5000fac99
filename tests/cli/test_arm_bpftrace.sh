#!/bin/bash
# --on bpftrace:FILE: a script of the user's fires. Needs root.
. "$(dirname "$0")/arm_lib.sh"

start_target block 40 1000
cat >slow.bt <<END
#!/usr/bin/env bpftrace
BEGIN { printf("noise\\n no stalltrap\\n"); }
tracepoint:raw_syscalls:sys_enter /args->id == 0 && tid == $target/ { @start[tid] = nsecs; }
tracepoint:raw_syscalls:sys_exit /@start[tid]/ {
    if (nsecs - @start[tid] > 20000000) { printf("stalltrap tid=%d read took %d us\\n", tid, (nsecs - @start[tid]) / 1000); }
    delete(@start[tid]);
}
END

run "a line that begins with stalltrap fires, the rest is the reason"
"$STALLTRAP" arm --source sample -p "$target" --on bpftrace:slow.bt --snapshots 3 --cooldown 200ms --timeout 60s -o bt >out 2>err
is "exit status" 0 $?
is "traps" 3 "$(grep -cE "^trap [123]: thread $target \"arm_target\" told by its bpftrace script: read took [0-9]+ us\$" out)"
has "armed line" 'waiting for bpftrace:slow.bt' err
"$STALLTRAP" query bt.3.db "SELECT kind, tid, reason FROM stalls s JOIN meta m ON m.key = 'trigger_stall_id' AND m.value = s.id" --format csv >row
has "the record" "^bpftrace,$target,.*told by a bpftrace script: read took [0-9]+ us" row
# The script saw the read return; the thread's own return to the CPU lies within some milliseconds before the line.
late=$("$STALLTRAP" query bt.3.db "SELECT max(0, s.start_ns - max(o.end_ns)) / 1000000 AS ms FROM stalls s JOIN meta m ON m.key = 'trigger_stall_id' AND m.value = s.id
    JOIN offcpu o ON o.thread_id = s.thread_id AND o.end_ns <= s.start_ns AND o.end_ns - o.start_ns > 20000000" --format csv | tail -1)
[ "${late:-9999}" -lt 1000 ] || fail "the record lies ${late:-?} ms behind the read"
"$STALLTRAP" report bt.3.db >report
has "the report" "told by a bpftrace script: read took" report

run "nothing is left running"
scripts() { # pids of bpftrace in this folder
    local pid
    for pid in $(pgrep -x bpftrace); do
        [ "$(readlink "/proc/$pid/cwd")" != "$PWD" ] || echo "$pid"
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

summary
