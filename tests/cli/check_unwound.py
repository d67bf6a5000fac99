"""Compares the stacks in a database, made of samples whose stacks were unwound by DWARF, with perf's own unwinding of the same snapshot:
check_unwound.py TRACE.db < `perf script --no-inline --ns -F tid,time,event,ip,sym`. User functions only, as perf names them."""
import collections
import re
import sqlite3
import sys

# perf pads the seconds of its clock, which starts when the machine does, to five digits.
db = sqlite3.connect(sys.argv[1])
origin = dict(db.execute("SELECT key, value FROM meta"))["origin_perf_ns"]
samples, stack = [], None
for line in sys.stdin:
    head = re.match(r"\s*(\d+)\s+(\d+)\.(\d{9}):\s+(\S+): ", line)
    frame = re.match(r"\s+([0-9a-f]+) (\S+)", line)
    if head:
        stack = []
        if head[4].startswith(("cpu-clock", "cycles")):
            samples.append((int(head[1]), int(head[2]) * 10**9 + int(head[3]) - origin, stack))
    elif frame and stack is not None and int(frame[1], 16) < 1 << 63:
        stack.append(frame[2].split("@")[0])
counts, shown = collections.Counter(), 0


def same(perf, our):
    """perf knows no names of PLT entries: it takes the symbol before them."""
    return perf == our or (perf == "_init" and our.endswith("@plt"))


def is_start_of(frames, whole):
    return len(frames) <= len(whole) and all(map(same, frames, whole))


for tid, time, frames in samples:
    ours = [name for (name,) in db.execute("SELECT function FROM calls WHERE tid = ? AND start_ns <= ? AND end_ns > ? AND NOT kernel ORDER BY depth DESC", (tid, time, time))]  # fmt: skip
    if len(frames) == len(ours) and is_start_of(frames, ours):
        counts["equal"] += 1
    elif frames and is_start_of(frames, ours):
        counts["perf's ends earlier"] += 1
    elif ours and is_start_of(ours, frames):
        counts["ours ends earlier"] += 1
    else:
        counts["different"] += 1
        shown += 1
        if shown <= 3:
            print("perf:", frames, "\nours:", ours)
print(f"{len(samples)} samples:", ", ".join(f"{n} {what}" for what, n in counts.items()))
sys.exit(len(samples) < 100 or counts["equal"] < 0.95 * len(samples))
