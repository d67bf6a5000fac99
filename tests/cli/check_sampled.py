"""Compares the calls of a sampled trace with those that the program logged: check_sampled.py TRACE.db LOG"""
import collections
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
meta = dict(db.execute("SELECT key, value FROM meta"))
period = meta["sample_period_ns"]
offset = meta["wall_offset_ns"] + meta["origin_perf_ns"]
logged = collections.defaultdict(list)
for line in open(sys.argv[2]):
    name, start, end = line.split()
    logged[name].append((int(start) - offset, int(end) - offset))
found = collections.defaultdict(list)
for name, start, end in db.execute("SELECT function, start_ns, end_ns FROM calls WHERE flags & 32 ORDER BY start_ns"):
    found[name].append((start, end))
blind = list(db.execute("SELECT start_ns, end_ns FROM gaps WHERE reason = 'not sampled'"))
failed = False


def fail(text):
    global failed
    failed = True
    print("FAILED:", text, file=sys.stderr)


def in_gap(time):
    return any(start - period <= time <= end + period for start, end in blind)


judged = excused = bad = 0
for name, calls in logged.items():
    left = list(found[name])
    for start, end in calls:
        near = [c for c in left if abs(c[0] - start) <= 1.5 * period and abs(c[1] - end) <= 1.5 * period]
        if near:
            left.remove(min(near, key=lambda c: abs(c[0] - start) + abs(c[1] - end)))
        if end - start < 5 * period:
            continue
        if not near and (in_gap(start) or in_gap(end)):
            excused += 1  # the trace says itself that it is blind there
            continue
        judged += 1
        if not near:
            bad += 1
            closest = min(found[name], key=lambda c: abs(c[0] - start) + abs(c[1] - end), default=None)
            print(f"{name} {start}..{end}: the nearest call is {closest}")
print(f"{judged} calls of five periods or more, {bad} of them not within 1.5 periods ({period} ns); {excused} at gaps")
if judged < 40:
    fail("too few calls to judge by")
if bad:
    fail(f"{bad} of {judged} long calls are wrong")
for name, calls in logged.items():
    if name == "main":
        continue
    truth = sum(end - start for start, end in calls)
    got = sum(end - start for start, end in found[name])
    print(f"{name}: {truth / 1e6:.1f} ms logged, {got / 1e6:.1f} ms sampled, {100 * (got / truth - 1):+.2f} %")
    if abs(got - truth) > 0.03 * truth:
        fail(f"time in {name}")
sys.exit(failed)
