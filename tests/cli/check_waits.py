"""Compares the waits of a sampled trace with those that the program logged: check_waits.py TRACE.db LOG"""
import sqlite3
import sys

SAMPLED, SEVERAL = 32, 64
db = sqlite3.connect(sys.argv[1])
meta = dict(db.execute("SELECT key, value FROM meta"))
period = meta["sample_period_ns"]
offset = meta["wall_offset_ns"] + meta["origin_perf_ns"]
logged = []
for line in open(sys.argv[2]):
    _, start, end, switches = line.split()
    logged.append((int(start) - offset, int(end) - offset, int(switches)))
thread = db.execute("SELECT thread_id FROM calls WHERE function = 'ask' LIMIT 1").fetchone()[0]
calls = list(db.execute("SELECT function, start_ns, end_ns, duration_ns, flags FROM calls WHERE thread_id = ? ORDER BY start_ns", (thread,)))
off = list(db.execute("SELECT start_ns, end_ns FROM offcpu WHERE thread_id = ? AND NOT preempted ORDER BY start_ns", (thread,)))
blind = list(db.execute("SELECT start_ns, end_ns FROM gaps WHERE thread_id = ? OR thread_id IS NULL AND detail NOT LIKE '%wake-ups%'", (thread,)))
failed = False


def fail(text):
    global failed
    failed = True
    print("FAILED:", text, file=sys.stderr)


def waits_in(start, end):
    return [o for o in off if o[0] >= start and o[1] <= end]


def is_blind(start, end):
    return any(start <= b_end and b_start <= end for b_start, b_end in blind)


logged = [w for w in logged if not is_blind(*w[:2])]
longest = max(end - start for start, end, _ in logged)
reads = [c for c in calls if c[0].strip("_").removeprefix("GI___libc_") == "read"]
waited = [(c, waits_in(c[1], c[2])) for c in reads]
waited = [(c, w) for c, w in waited if w and logged[0][0] <= w[0][0] and w[0][1] <= logged[-1][1] and not is_blind(*w[0])]
switches = sum(s for _, _, s in logged)
print(f"{len(logged)} reads that left the CPU {switches} times, the longest for {longest} ns; {len(waited)} calls that waited, the longest for "
      f"{max(c[3] for c, _ in waited)} ns")
if len(logged) < 500:
    fail("too few to judge by")
if len(waited) != switches:
    fail("not a call for each wait")
if any(len(w) > 1 for _, w in waited):
    fail("a call holds two waits")
# Each wait is a call of its own: it lies in the read that the program logged, and is of the wait's length.
bad = 0
for c, w in waited:
    (start, end), most = w[0], c[3]
    around = [x for x in logged if x[0] <= start and end <= x[1]]
    if len(around) != 1 or not end - start <= most <= (around[0][1] - around[0][0]) * 1.05 + period:
        bad += 1
        if bad < 5:
            print(f"{c}: the wait is {start}..{end}, the read {around}")
if bad:
    fail(f"{bad} of {len(waited)} calls are not as long as the read")
# What is longer than any of the program's calls says that it may be several.
for function, start, end, duration, flags in calls:
    if function in ("ask", "read") and duration > longest * 1.05 + period and not flags & SEVERAL:
        fail(f"{function} of {duration} ns is no single call and does not say so (flags {flags})")
if any(not c[4] & SAMPLED for c in calls):
    fail("a call that is not marked as sampled")
sys.exit(failed)
