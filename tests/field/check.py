"""Compares what a trace tells of the stall that fired with what is known of it: check.py STALLTRAP DB REPORT TRUTH ROW OPTION...
TRUTH is the log of whoever made the stalls (see lib.sh). An option that is not given is not asked for."""
import argparse
import re
import sys

import told
from told import MS


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("stalltrap", "db", "report", "truth", "row"):
        parser.add_argument(name)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--tid", type=int, help="the thread, where the log does not tell it")
    parser.add_argument("--thread", help="a pattern: the name of the thread")
    parser.add_argument("--state")
    parser.add_argument("--syscall", help="a pattern")
    parser.add_argument("--waker", help="a pattern")
    parser.add_argument("--place", action="append", default=[], help="a pattern: a function that it was in")
    parser.add_argument("--says", action="append", default=[], help="a pattern: in the report")
    parser.add_argument("--never", action="append", default=[], help="a pattern: not in the report")
    parser.add_argument("--false", action="append", default=[], help="a pattern: a known fault of the report, which is told")
    parser.add_argument("--part", action="store_true", help="what is told may be a part of what was made")
    parser.add_argument("--took", help="a pattern: a duration in the report that must be that of what was made")
    parser.add_argument("--slack", type=float, default=5, help="ms that the stall may begin before it was asked for, or end after")
    return parser.parse_args()


def known_faults(options, report):
    for pattern in options.false:
        yield from sorted({match[0] for match in re.finditer(pattern, report)})


def other_durations(options, report, made):
    start, end, least, _ = made
    for match in re.finditer(options.took, report) if options.took else []:
        took = float(match[1]) * {"us": 1000, "ms": MS, "s": 1000 * MS}[match[2]]
        if took < least * 0.95 or took > (end - start) * 1.05:
            yield f"the report says '{match[0]}', and it was {least / MS:.0f} to {(end - start) / MS:.0f} ms"


def faults(options, stall):
    report = open(options.report).read()
    made = told.made(options.truth)
    why = [told.bounds(one, stall, int(options.slack * MS), options.part) for one in made]
    if not made or None not in why:
        nearest = min(zip(made, why), key=lambda pair: abs(pair[0][0] - int(stall["start"])), default=(None, "none was made"))[1]
        yield f"the time is that of no stall that was made: {nearest}"
        return
    tid = made[why.index(None)][3] or options.tid
    if tid and int(stall["tid"]) != tid:
        yield f"thread {stall['tid']}, and it was {tid}"
    for known in known_faults(options, report):
        print(f"KNOWN: {options.row}: the report says '{known}'")
    yield from other_durations(options, report, made[why.index(None)])
    for key in ("kind", "thread", "state", "syscall", "waker"):
        wanted = getattr(options, key)
        if wanted is not None and not re.fullmatch(wanted, stall[key]):
            yield f"{key} is '{stall[key]}', not '{wanted}'"
    place = told.place(options.stalltrap, options.db, stall)
    for wanted in options.place:
        if not any(re.fullmatch(wanted, name) for name in place):
            yield f"no '{wanted}' in the place: {' '.join(place)}"
    for wanted in options.says:
        if not re.search(wanted, report):
            yield f"the report has no '{wanted}'"
    for unwanted in options.never:
        if re.search(unwanted, report):
            yield f"the report has '{unwanted}'"


def main():
    options = arguments()
    try:
        stall = told.fired(options.stalltrap, options.db)
    except ValueError as error:
        sys.exit(str(error))
    found = list(faults(options, stall))
    if found:
        sys.exit("\n".join(found))
    print(f"true: {options.row}: {int(stall['duration']) / MS:.1f} ms")


main()
