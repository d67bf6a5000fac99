#!/usr/bin/env python3
"""check_stalls.py TRACE.db FORWARDER-LOG: the stalls of the database are those of the forwarder's log, one by one.

Both tell the same thread in the same order, and each stall of the database lies within the log's (taken right before and
after the call that stalls). The two clocks differ by an offset that is not known but is the same for all.
A stall that the log calls failed, or that was shorter than 30 ms, may be there or not: how long an fsync takes is the disk's
decision. There must be at least seven others.
Stalls during which the thread was runnable and waited for a CPU that others had are not the forwarder's doing and are left out.
"""
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


def without_missing(truth, found):
    """Drops uncertain stalls that are not in the database: as many as the log has more, the shortest first."""
    doubtful = sorted((t for t in truth if uncertain(t)), key=lambda t: t[2] - t[1])
    dropped = doubtful[: max(0, len(truth) - len(found))]
    return [t for t in truth if t not in dropped]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    found = db.execute(
        "SELECT tid, start_ns, end_ns FROM stalls WHERE kind = 'offcpu' AND state <> 'runnable' ORDER BY start_ns"
    ).fetchall()
    truth = sorted(logged(sys.argv[2]), key=lambda stall: stall[1])
    if sum(not uncertain(t) for t in truth) < min(7, len(truth)):
        sys.exit("too few stalls are long enough to count")
    truth = without_missing(truth, found)
    if [t[0] for t in truth] != [f[0] for f in found]:
        sys.exit(f"threads that stalled: {[t[0] for t in truth]} in the log, {[f[0] for f in found]} in the database")
    least, most = float("-inf"), float("inf")
    for (_, start, end, _), (_, found_start, found_end) in zip(truth, found):
        if (end is None) != (found_end is None):
            sys.exit(f"a stall ended at {end} in the log, at {found_end} in the database")
        # log = database + offset: start <= found_start + offset, found_end + offset <= end
        least = max(least, start - found_start)
        most = min(most, end - found_end if end is not None else most)
        if least > most + TOLERANCE_NS:
            sys.exit(f"the stall at {found_start}..{found_end} is not the log's at {start}..{end}")
    print(f"{len(found)} stalls, all those of the log")


if __name__ == "__main__":
    main()
