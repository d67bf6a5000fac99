"""Compares what was decoded of a sampled recording with perf's listing of the same file: check_recording.py TRACE.db <LISTING

The listing is of `perf script --ns --show-switch-events --show-task-events -F comm,tid,time,event,trace,ip,sym`. Both must tell of the same
threads, born at the same nanosecond; of the same times off a CPU; of the same wake-ups by the same; and where perf has a sample of a
thread, the calls that are open then must be its chain."""
import re
import sqlite3
import sys

HEAD = re.compile(r"\s*(\S.*?)\s+(\d+)\s+(\d+)\.(\d{9}):\s+(.*)")
db = sqlite3.connect(sys.argv[1])
meta = dict(db.execute("SELECT key, value FROM meta"))
origin = meta["origin_perf_ns"]
failed = False


class Event:
    """A record of the listing, with its call chain, the outermost first."""

    def __init__(self, match):
        comm, tid, s, ns, rest = match.groups()
        self.comm, self.tid, self.time = comm, int(tid), int(s) * 10**9 + int(ns) - origin
        record = re.match(r"(PERF_RECORD_[A-Z0-9]+)(.*)", rest)
        self.name, self.text = (x.strip(": ") for x in (record.groups() if record else (rest + " ").split(": ", 1)))
        self.chain = []


def fail(text):
    global failed
    failed = True
    print("FAILED:", text, file=sys.stderr)


def read_listing():
    events = []
    for line in sys.stdin:
        if line.startswith("\t"):
            events[-1].chain.insert(0, line.split(None, 1)[1].strip())
        elif match := HEAD.match(line):
            events.append(Event(match))
    return events


def same(what, ours, perfs):
    ours, perfs = sorted(set(ours)), sorted(set(perfs))
    for row in ours:
        if row not in perfs:
            fail(f"{what}: perf has no {row}")
    for row in perfs:
        if row not in ours:
            fail(f"{what}: {row} is missing")
    print(f"{what}: {len(ours)}")
    if not ours:
        fail(f"{what}: nothing to compare")


def switches(events, tid):
    """From a thread's way off a CPU to its way back on."""
    out = None
    for e in events:
        if e.tid != tid or e.name != "PERF_RECORD_SWITCH":
            continue
        if e.text.startswith("OUT"):
            out = e
        elif out:
            yield (tid, out.time, e.time, int("preempt" in out.text))
            out = None


def measured(known):
    """Waits that a trigger's record tells, and no switch: they began before the thread's events were there."""
    waits = db.execute("SELECT tid, start_ns, end_ns, state = 'runnable' FROM stalls WHERE kind = 'offcpu' AND end_ns").fetchall()
    return [w for w in waits if not any(k[0] == w[0] and k[1] < w[2] and k[2] > w[1] for k in known)]


def check_births(events, tids):
    """Those of the recording: what was there already has a fork of the time at which it was found."""
    seen = {int(m.group(2)): (e.time, m.group(1) == m.group(2)) for e in events if e.name == "PERF_RECORD_FORK" and (m := re.match(r"\((\d+):(\d+)\)", e.text))}
    if not set(tids) <= set(seen):
        fail(f"the threads are {tids}, perf's {sorted(seen)}")
    births = [(tid, seen[tid][0]) for tid in tids if tid in seen and not seen[tid][1]]
    same("births", db.execute("SELECT tid, start_ns FROM thread WHERE start_ns"), births)


def check_wakes(events, tids):
    wakes = []
    for e in (e for e in events if e.name == "sched:sched_waking"):
        woken = int(re.search(r" pid=(\d+) ", e.text).group(1))
        if woken in tids:
            wakes.append((woken, e.time, e.tid, any("hrtimer_wakeup" in f for f in e.chain)))
    ours = []
    for tid, time, detail in db.execute("SELECT tid, time_ns, detail FROM mark JOIN thread t ON t.id = thread_id WHERE mark.name = 'woken'"):
        by = re.match(r"by thread (\d+) ", detail)
        # Whom a timer's interrupt came upon is no waker, and perf's listing does not say that it was one.
        timer = detail == "by an interrupt in hrtimer_wakeup"
        there = [w for w in wakes if w[:2] == (tid, time)]
        ours.append((tid, time, there[0][2] if timer and there else int(by.group(1)) if by else 0, timer))
    same("wake-ups", ours, wakes)


def open_calls(tid, time):
    return [f for (f,) in db.execute("SELECT function FROM calls WHERE tid = ? AND start_ns <= ? AND end_ns > ? ORDER BY depth", (tid, time, time))]


def is_within(chain, calls):
    """All of the chain in its order. One more may be there: the caller of a function without a frame of its own, which the code tells. What
    perf has no name for may have one: the snapshot keeps those of BPF programs."""
    rest = iter(calls)
    return len(calls) <= len(chain) + 1 and all(
        any(name == frame or frame == "[unknown]" and name.startswith("bpf_prog_") for name in rest) for frame in chain)


def check_samples(events, tids):
    judged = 0
    for e in events:
        if e.name != "cpu-clock" or e.tid not in tids:
            continue
        judged += 1
        calls = open_calls(e.tid, e.time)
        if not is_within(e.chain, calls):
            fail(f"sample of thread {e.tid} at {e.time}: perf has {e.chain}, open are {calls}")
    print(f"samples: {judged}")
    ours = meta["samples"] - meta["switch_samples"]
    if judged != ours or judged < 10:
        fail(f"{judged} samples in perf's listing, {ours} in ours")


def main():
    events = read_listing()
    tids = [tid for (tid,) in db.execute("SELECT tid FROM thread")]
    check_births(events, tids)
    waits = [s for tid in tids for s in switches(events, tid)]
    same("times off a CPU", db.execute("SELECT tid, o.start_ns, o.end_ns, preempted FROM offcpu o JOIN thread t ON t.id = thread_id"),
         waits + measured(waits))
    check_wakes(events, tids)
    check_samples(events, tids)
    return failed


sys.exit(main())
