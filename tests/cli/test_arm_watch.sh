#!/bin/bash
# watch: the histogram of what a trigger measures. Needs root: BPF programs are loaded.
. "$(dirname "$0")/arm_lib.sh"

run "a histogram at the end, nothing recorded, nothing fired"
start_target block 40 1000
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --timeout 1s >out 2>err
is "exit status" 0 $?
has "what was measured" 'offcpu>1ms: .* [1-9][0-9]* measured' out
has "a bucket" '\.\. .* ms +[1-9][0-9]* \|@+' out
is "files" "" "$(ls stalltrap.* 2>/dev/null)"
alive "$target" || fail "the target did not survive"

run "SIGTERM ends it"
: >err
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' >out 2>err &
watch=$!
wait_for "it to begin" grep -q '^watching' err
sleep 0.3
kill -TERM "$watch"
wait "$watch"
is "exit status" 0 $?
has "what was measured" 'offcpu>1ms' out

run "--interval prints it anew"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --interval 200ms --timeout 1s >out 2>err
[ "$(grep -c 'offcpu>1ms' out)" -ge 4 ] || fail "fewer than 4 histograms in 1 s"
lacks "escape sequences in a file" "$(printf '\033')" out

run "thresholds to choose from, and the threads"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --timeout 500ms >out 2>err
has "thresholds" '^  threshold for p99 [0-9.]+ms   p99.9 [0-9.]+ms   worst [0-9.]+ms$' out
has "the thread" "^ +$target arm_target +[1-9]" out
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --by-thread --timeout 500ms >out 2>err
has "its own histogram" "^ thread $target \"arm_target\": [1-9][0-9]* measured" out

run "--json"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --on 'offcpu>2ms,state=blocked' --json --timeout 500ms >out 2>err
python3 -c '
import json, sys
d = json.load(open("out"))
a, b = d["triggers"]
assert (a["trigger"], b["trigger"]) == ("offcpu>1ms", "offcpu>2ms,state=blocked") and d["lost"] == 0
assert a["count"] > 5 and a["worst_ns"] > 30e6 and a["p50_ns"] <= a["p99_ns"] <= a["p999_ns"] <= a["worst_ns"] <= a["sum_ns"]
assert sum(x["count"] for x in a["buckets"]) == a["count"]
for one in [a] + a["threads"]:
    low, high = (sum(x["count"] * x[edge] for x in one["buckets"]) for edge in ("from_ns", "to_ns"))
    assert low <= one["sum_ns"] <= high, one # each value is in its own bucket
assert [x for x in a["buckets"] if x["from_ns"] == 1 << 25] # blocked for 40 ms each time
threads = {t["tid"]: t for t in a["threads"]}
assert threads[int(sys.argv[1])]["thread"] == "arm_target"
assert a["sum_ns"] <= sum(t["sum_ns"] for t in threads.values()) # which were read later' "$target" || fail "the JSON is not what was measured"

run "each of 300 threads"
"$STALLTRAP" watch --on 'syscall:getppid>5ms' --json -- python3 -I -S -c '
import os, threading
start = threading.Barrier(300)
def work():
    start.wait() # all are there at once
    for _ in range(7): os.getppid()
threads = [threading.Thread(target=work) for _ in range(300)]
for t in threads: t.start()
for t in threads: t.join()' >out 2>err
is "exit status" 0 $?
python3 -c '
import json
t = json.load(open("out"))["triggers"][0]
assert [x["count"] for x in t["threads"]].count(7) == 300 and t["count"] == sum(x["count"] for x in t["threads"])' || fail "they are not counted exactly"

run "--prometheus FILE"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --prometheus metrics.prom --interval 100ms --timeout 500ms >out 2>err
is "exit status" 0 $?
python3 "$SOURCE/tests/cli/check_openmetrics.py" <metrics.prom >series || fail "metrics.prom is not OpenMetrics"
has "all threads" '^stalltrap_measured_seconds trigger="offcpu>1ms" [1-9]' series
has "the thread" "^stalltrap_thread_seconds .*tid=\"$target\",thread=\"arm_target\" [1-9]" series
is "its mode" 644 "$(stat -c %a metrics.prom)"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --prometheus /no/such/folder/x --timeout 500ms >out 2>err
is "exit status without a folder" 1 $?

run "--prometheus PORT, on the loopback only"
port=$((20000 + $$ % 20000))
: >err
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --prometheus $port >out 2>err &
watch=$!
wait_for "it to begin" grep -q '^watching' err
has "where" "metrics at http://127\.0\.0\.1:$port/metrics" err
curl -sS -o got -D head "http://127.0.0.1:$port/metrics" || fail "curl"
has "type" '^Content-Type: application/openmetrics-text; version=1\.0\.0' head
python3 "$SOURCE/tests/cli/check_openmetrics.py" <got >series || fail "what is served is not OpenMetrics"
is "another address" "000" "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.2:$port/metrics")"
is "another page" 404 "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/other")"
is "another method" 405 "$(curl -s -o /dev/null -w '%{http_code}' -d x "http://127.0.0.1:$port/metrics")"
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --prometheus $port --timeout 1s >out2 2>err2
is "a port that is taken" 1 $?
kill -INT "$watch"
wait "$watch"
is "exit status" 0 $?
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' --prometheus 99999 --timeout 1s >out2 2>err2
is "no such port" 2 $?

run "--prometheus while arm runs"
arm --no-decode -o pro -p "$target" --on 'offcpu>20ms,state=sleeping' --snapshots 0 --prometheus 127.0.0.1:$port
wait_for "a trap" grep -q '^trap 1' out
curl -sS -o got "http://127.0.0.1:$port/metrics" || fail "curl"
python3 "$SOURCE/tests/cli/check_openmetrics.py" <got >series || fail "what arm serves is not OpenMetrics"
has "traps" '^stalltrap_traps_total [1-9]' got
kill -TERM "$arm"
wait_arm
"$STALLTRAP" arm -p "$target" --prometheus $port >out 2>err
is "--prometheus without --on" 2 $?

run "it ends with its target"
: >err
"$STALLTRAP" watch -p "$target" --on 'offcpu>1ms' >out 2>err &
watch=$!
wait_for "it to begin" grep -q '^watching' err
kill -KILL "$target"
wait "$watch"
is "exit status" 0 $?

run "a command"
"$STALLTRAP" watch --on 'offcpu>1ms' -- ./arm_target end 20 5 >out 2>err
is "exit status" 0 $?
"$STALLTRAP" watch --on 'offcpu>1ms' -- ./no-such-program >out 2>err
is "exit status" 1 $?
has "message" "cannot run './no-such-program'" err

summary
