#!/usr/bin/env python3
"""damage.py STALLTRAP MOST PROGRAM [ARG...]

Records PROGRAM with `step`, damages its trace in two places around a PSB+, and decodes what is left. A damage is bytes that begin no packet, or
lost packets in place of which there is an overflow, as a CPU sends it. The first is in the middle of the stretch before the PSB+, the second in
it or up to three packets behind it. That for all PSB+ and pairs of damages, or for MOST of them (not 0), spread evenly.

The whole trace is the truth. Behind a damage callers may be missing; but none may be told that the whole trace does not have, no call may go on
over a gap, a trace that starts must have stopped before, and what could not be decoded must lie in rows of `gaps`. libipt's walk alone must
tell the same. Where in its stretch a gap begins is an estimate; one of bad packets ends at the PSB+ behind it.
"""
import bisect
import itertools
import os
import sqlite3
import struct
import subprocess
import sys

AUXTRACE = 71  # PERF_RECORD_AUXTRACE
BAD, OVERFLOW = "bad packets", "an overflow"
NO_PACKETS, OVF, PAD, FUP, TYPE = b"\2\2" * 8, b"\2\xf3", b"\0", 0x1D, 0x1F
PAIRS = "SELECT DISTINCT p.function, c.function, c.flags & 1 FROM calls c JOIN calls p ON p.id = c.parent_id"
GAPS = "SELECT start_ns, end_ns FROM gaps WHERE thread_id IS NOT NULL"
ACROSS = """SELECT c.function FROM calls c JOIN gaps g ON g.thread_id = c.thread_id
            WHERE c.start_ns < g.start_ns AND c.end_ns > g.end_ns"""


class Packet:
    def __init__(self, at, name, tsc):
        self.at, self.name, self.tsc = at, name, tsc


class Trace:
    """The only ring of a snapshot, packet by packet."""

    def __init__(self, stalltrap, path):
        self.raw = open(path, "rb").read()
        begin, size = self.find()
        self.packets, tsc = [], 0
        for line in run(stalltrap, "decode", "--dump", "packets", path).splitlines():
            if line.startswith("#"):
                continue
            offset, name, *rest = line.split()
            tsc = int(rest[0], 16) if name == "tsc" else tsc
            self.packets.append(Packet(begin + int(offset, 16), name, tsc))
        self.packets.append(Packet(begin + size, "end", tsc))
        self.ends = [i for i, p in enumerate(self.packets) if p.name == "psbend"]
        # Behind it there is no room for damage: the next record of the file begins.
        self.last = max(i for i, p in enumerate(self.packets) if p.at <= begin + size - len(NO_PACKETS))

    def find(self):
        at, size = struct.unpack_from("<QQ", self.raw, 40)
        end, found = at + size, []
        while at < end:
            kind, _, length = struct.unpack_from("<IHH", self.raw, at)
            if kind == AUXTRACE:
                (trace,) = struct.unpack_from("<Q", self.raw, at + 8)
                found.append((at + length, trace))
                length += trace
            at += length
        if len(found) != 1:
            sys.exit(f"{len(found)} rings, expected 1")
        return found[0]

    def damaged(self, damages):
        """(index of a packet, BAD or OVERFLOW)... -> bytes."""
        data = bytearray(self.raw)
        for index, kind in damages:
            at = self.packets[index].at
            if kind is BAD:
                data[at : at + len(NO_PACKETS)] = NO_PACKETS
            else:
                self.overflow(data, index)
        return data

    def overflow(self, data, index):
        """Packets are lost up to one that tells a place. Where tracing is on, that is in a FUP packet (Intel SDM, "Overflow (OVF) Packet"); where it
        is not known to be, a PSB+ goes on."""
        at = self.packets[index].at
        behind = [p for p in self.packets[index + 1 :] if p.at >= at + len(OVF)]
        to = next(p for p in behind if p.name in ("tip", "tip.pge", "fup", "psb", "end"))
        data[at : to.at] = OVF.ljust(to.at - at, PAD)
        if to.name == "tip":
            data[to.at] = data[to.at] & ~TYPE | FUP

    def time_of_psb(self, n):
        """Of the n-th PSB+, or the end of the trace."""
        return self.packets[self.ends[n] if n < len(self.ends) else -1].tsc


class Database:
    def __init__(self, stalltrap, path):
        if os.path.exists("damage.db"):
            os.remove("damage.db")
        run(stalltrap, "decode", path, "-o", "damage.db")
        db = sqlite3.connect("file:damage.db?mode=ro", uri=True)
        (self.origin,) = db.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'origin_perf_ns'").fetchone()
        self.pairs = set(db.execute(PAIRS))
        self.gaps = [(start + self.origin, end + self.origin) for start, end in db.execute(GAPS)]
        self.across = [name for (name,) in db.execute(ACROSS)]
        db.close()

    def has_gap(self, start, end):
        """That overlaps or touches the time between."""
        return any(a <= end and b >= start for a, b in self.gaps)


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ends with {done.returncode}: {done.stderr}")
    return done.stdout


def branches(stalltrap, path, *options):
    return run(stalltrap, "decode", "--dump", "branches", *options, path)


def pairs_by_branches(listing):
    """(caller, callee, the call was not seen) by calls and returns alone. Where code runs on from one symbol into another (glibc's _start, mempcpy) the
    whole trace has the first as the frame; a trace that begins in the second can but name that."""
    starts, calls, returns = {}, [], []
    for line in listing.splitlines():
        _, _, _, source, to, kind, symbol = line.split(" ", 6)
        source, to, (name, _, offset) = int(source, 16), int(to, 16), symbol.rpartition("+0x")
        if kind == "gap" or not name or not to:
            continue
        starts[to - int(offset, 16)] = name
        if kind.startswith("call"):
            calls.append((source, to))
        elif kind.startswith("return"):
            returns.append((to - 1, source))
    order = sorted(starts)

    def name_of(address):
        return starts[order[max(bisect.bisect_right(order, address) - 1, 0)]]

    return {(name_of(a), name_of(b), seen) for seen in (0, 1) for a, b in calls} | {(name_of(a), name_of(b), 1) for a, b in returns}


def starts_twice(listing):
    """Lines of a trace that starts though it never stopped."""
    on, found = False, []
    for line in listing.splitlines():
        kind = line.split(" ", 6)[5]
        if kind.startswith("tr-start"):
            if on:
                found.append(line)
            on = True
        elif kind.startswith("tr-end") or kind == "gap":
            on = False
    return found


class Sweep:
    def __init__(self, stalltrap, path):
        self.stalltrap, self.trace = stalltrap, Trace(stalltrap, path)
        self.known = Database(stalltrap, path).pairs
        self.known |= {(caller, callee, 1) for caller, callee, _ in self.known} | pairs_by_branches(branches(stalltrap, path))
        self.tried, self.faults = 0, []

    def judge(self, psb, damages):
        """The faults of what was decoded."""
        with open("damaged.data", "wb") as f:
            f.write(self.trace.damaged(damages))
        db = Database(self.stalltrap, "damaged.data")
        if db.pairs - self.known:
            yield f"calls that never were: {sorted(pair[:2] for pair in db.pairs - self.known)[:4]}"
        if db.across:
            yield f"go on over a gap: {db.across[:4]}"
        for n, (_, kind) in enumerate(damages, psb):
            start, end = self.trace.time_of_psb(n - 1), self.trace.time_of_psb(n)  # of the stretch
            if not db.has_gap(end if kind is BAD else start, end):
                yield f"no gap from {start} to {end}: {db.gaps}"
        listing = branches(self.stalltrap, "damaged.data")
        if starts_twice(listing):
            yield f"starts though it never stopped: {starts_twice(listing)[0]}"
        if listing != branches(self.stalltrap, "damaged.data", "--reference"):
            yield "libipt's walk tells something else"

    def look(self, psb, behind, first, second):
        ends = self.trace.ends
        before, at = (ends[psb - 1] + ends[psb]) // 2, ends[psb] + behind
        for fault in self.judge(psb, ((before, first), (at, second))):
            self.faults.append(f"{first} before PSB+ {psb}, {second} {behind} packets from its end: {fault}")

    def look_at(self, most):
        kinds = itertools.product((BAD, OVERFLOW), repeat=2)
        places = [(n, behind, *pair) for n, behind, pair in itertools.product(range(1, len(self.trace.ends)), range(5), list(kinds))
                  if self.trace.ends[n] + behind <= self.trace.last]
        for place in places[:: len(places) // most | 1 if most else 1]:  # odd: each kind gets its turn
            self.tried += 1
            self.look(*place)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    stalltrap, most, program = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    run(stalltrap, "arm", "--source", "step", "--no-decode", "--ring", "64M", "-o", "damage", "--", *program)
    sweep = Sweep(stalltrap, "damage.1.data")
    os.remove("damage.1.data")
    sweep.look_at(most)
    for fault in sweep.faults[:20]:
        print(fault)
    print(f"{' '.join(program)}: {sweep.tried} pairs of damages, {len(sweep.faults)} faults")
    sys.exit(1 if sweep.faults or not sweep.tried else 0)


if __name__ == "__main__":
    main()
