#!/bin/bash
# watch: sleeps of every length from 1 us to 1 s are in the powers of two that they belong to. Needs root.
. "$(dirname "$0")/lib.sh"

# In the middle of each octave. A sleep takes no less than what was asked for, and no more than the program's own clock says.
cat >sleeper.py <<'END'
import ctypes, json, time
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0) # PR_SET_TIMERSLACK: 1 ns
asked, seen = [], []
for power in range(10, 30):
    for _ in range(12 if power < 24 else 2):
        asked.append(3 << power - 1)
        start = time.monotonic_ns()
        time.sleep(asked[-1] / 1e9)
        seen.append(time.monotonic_ns() - start)
json.dump([asked, seen], open("truth.json", "w"))
END
"$STALLTRAP" watch --on 'syscall:clock_nanosleep>1ms' --json -- python3 -I -S sleeper.py >watch.json 2>watch.err ||
    fail "watch ends with $?" watch.err

python3 - <<'END' || fail "values are in buckets that are not theirs" watch.json
import json
ours = json.load(open("watch.json"))["triggers"][0]
asked, seen = json.load(open("truth.json"))
assert ours["count"] == len(asked), (ours["count"], len(asked))
for power in range(10, 34):
    edge = 1 << power
    least, most = (sum(x >= edge for x in values) for values in (asked, seen))
    got = sum(b["count"] for b in ours["buckets"] if b["from_ns"] >= edge)
    assert least <= got <= most, ("%d ns and more" % edge, least, got, most)
for share, name in (.5, "p50_ns"), (.99, "p99_ns"):
    at = int(len(asked) * share + .999) - 1
    assert sorted(asked)[at] <= ours[name] <= sorted(seen)[at] * 1.126, (name, sorted(asked)[at], ours[name], sorted(seen)[at])
END
echo "all passed"
