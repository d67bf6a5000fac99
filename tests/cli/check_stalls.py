#!/usr/bin/env python3
"""check_stalls.py [--may-split] TRACE.db FORWARDER-LOG: the stalls of the database are those of the forwarder's log, one by one.

Both tell the same thread in the same order, and each stall of the database lies within the log's (taken right before and
after the call that stalls). The two clocks differ by an offset that is not known but is the same for all.
A stall that the log calls failed, or that was shorter than 30 ms, may be there or not. With --may-split any may be missing: it
was several short sleeps. At least seven must be there (all, when there are less).
Stalls during which the thread was runnable and waited for a CPU that others had are not the forwarder's doing and are left out.
"""
import itertools
import re
import sqlite3
import sys

# The clocks drift apart by parts in a million.
TOLERANCE_NS = 2_000_000
CERTAIN_NS = 30_000_000


def logged(path):
    pattern = re.compile(r"^stall n=\d+ kind=\S+ ms=\d+ tid=(\d+) start_ns=(\d+) end_ns=(\d+|-) duration_ns=\S+( failed)?")
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            m = pattern.match(line)
            if m:
                yield int(m[1]), int(m[2]), None if m[3] == "-" else int(m[3]), bool(m[4])


def uncertain(stall):
    _, start, end, failed = stall
    return failed or (end is not None and end - start < CERTAIN_NS)


def mismatch(truth, found):
    """Why these are not the same stalls; None: they are."""
    if [t[0] for t in truth] != [f[0] for f in found]:
        return f"threads that stalled: {[t[0] for t in truth]} in the log, {[f[0] for f in found]} in the database"
    least, most = float("-inf"), float("inf")
    for (_, start, end, _), (_, found_start, found_end) in zip(truth, found):
        if (end is None) != (found_end is None):
            return f"a stall ended at {end} in the log, at {found_end} in the database"
        # log = database + offset: start <= found_start + offset, found_end + offset <= end
        least = max(least, start - found_start)
        most = min(most, end - found_end if end is not None else most)
        if least > most + TOLERANCE_NS:
            return f"the stall at {found_start}..{found_end} is not the log's at {start}..{end}"
    return None


def main():
    may_split = "--may-split" in sys.argv
    names = [a for a in sys.argv[1:] if a != "--may-split"]
    if len(names) != 2:
        sys.exit(__doc__)
    db = sqlite3.connect(f"file:{names[0]}?mode=ro", uri=True)
    found = db.execute(
        "SELECT tid, start_ns, end_ns FROM stalls WHERE kind = 'offcpu' AND state <> 'runnable' ORDER BY start_ns"
    ).fetchall()
    truth = sorted(logged(names[1]), key=lambda stall: stall[1])
    doubtful = [i for i, t in enumerate(truth) if may_split or uncertain(t)]
    missing = len(truth) - len(found)
    if len(found) < min(7, len(truth)) or missing > len(doubtful):
        sys.exit(f"{len(truth)} stalls in the log, {len(found)} in the database")
    why = None
    for left_out in itertools.combinations(doubtful, max(0, missing)):
        why = mismatch([t for i, t in enumerate(truth) if i not in left_out], found)
        if not why:
            print(f"{len(found)} stalls, those of the log" + (f" but for {missing} short ones" if missing else ""))
            return
    sys.exit(why)


if __name__ == "__main__":
    main()
