"""A row of the table of idle waits: idle_table.py WATCH.json TRUTH FROM NAME KIND MODE. What was measured in the bucket of 134 ms and above,
of the threads that were stalled (all where the truth does not know) and of others, beside the stalls in the truth's lines behind FROM."""
import json
import sys

watched, truth, start, name, kind, mode = sys.argv[1:]
lines = [line.split() for line in open(truth)][int(start):]
stalled = {int(line[3]) for line in lines} - {0}
long = {t["tid"]: sum(b["count"] for b in t["buckets"] if b["from_ns"] >= 1 << 27) for t in json.load(open(watched))["triggers"][0]["threads"]}
told = sum(n for tid, n in long.items() if not stalled or tid in stalled)
fired = min(told, len(lines))
print(f"{name:15} {kind:7} {mode:8} {len(lines):6} {fired:6} {len(lines) - fired:7} {sum(long.values()) - fired:6}")
