#!/usr/bin/env python3
"""many_rings.py STALLTRAP DATA OUT KIND RINGS SLOTS [THREADS [damage]]: of a recording of one thread by `--source step` one with RINGS rings, in
each of which its trace stands SLOTS times, one after the other. There are RINGS threads, THREADS in each process (1). KIND thread: each has a
ring; cpu: each ring is of a CPU, and a thread goes on to the next CPU with each slot. `damage`: in each third ring there are bytes that begin no
packet, in each third an overflow."""
import struct
import subprocess
import sys

MMAP, COMM, FORK, ITRACE_START, SWITCH, MMAP2 = 1, 3, 7, 12, 14, 10
DROPPED = (4, 11, ITRACE_START, SWITCH, 15)  # EXIT, AUX, and what is made anew
AUXTRACE_INFO, AUXTRACE = 70, 71
OUT = 1 << 13  # of misc: PERF_RECORD_MISC_SWITCH_OUT
KERNEL = 0xFFFFFFFF  # the pid of its mappings
TRAILER = 32  # of a record: pid, tid, time, CPU, id
BETWEEN = 100_000  # ns from slot to slot
NO_PACKETS, OVF = b"\2\2" * 8, b"\2\xf3"


class Source:
    def __init__(self, stalltrap, path):
        self.raw = open(path, "rb").read()
        self.begin, size = struct.unpack_from("<QQ", self.raw, 40)
        self.end = self.begin + size
        self.shared, self.own, self.ring, self.id, self.time = [], [], None, None, 0
        self.read()
        self.tsc, self.psbs = self.find(stalltrap, path)
        at = [struct.unpack_from("<Q", self.trace, o + 1)[0] & (1 << 56) - 1 for o in self.tsc]
        self.first, self.last = min(at), max(at)
        self.step = self.last - self.first + BETWEEN

    def read(self):
        at = self.begin
        while at < self.end:
            kind, _, size = struct.unpack_from("<IHH", self.raw, at)
            record, at = self.raw[at : at + size], at + size
            if kind == AUXTRACE:
                assert self.ring is None, "it has more than one ring"
                n = struct.unpack_from("<Q", record, 8)[0]
                self.ring, self.trace, at = record, self.raw[at : at + n], at + n
            elif kind == AUXTRACE_INFO:
                shift, mult, zero = struct.unpack_from("<3Q", record, 16 + 8)
                assert (shift, mult, zero) == (0, 1, 0), "its TSC is no time in ns"
                self.shared.append(record)
            elif kind in (MMAP, MMAP2, COMM) and struct.unpack_from("<I", record, 8)[0] != KERNEL:
                self.own.append(record)
                self.id = record[-8:]
                self.time = max(self.time, struct.unpack_from("<Q", record, size - 24)[0] if kind == COMM else 0)
            elif kind not in DROPPED and kind != FORK:
                self.shared.append(record)

    def find(self, stalltrap, path):
        """The offsets of TSC packets and of PSB+."""
        listing = subprocess.run([stalltrap, "decode", "--dump", "packets", path], stdout=subprocess.PIPE, check=True, text=True).stdout
        lines = [line.split() for line in listing.splitlines() if not line.startswith("#")]
        return tuple([int(line[0], 16) for line in lines if line[1] == name] for name in ("tsc", "psb"))

    def slot(self, n):
        """The trace, n slots later."""
        trace = bytearray(self.trace)
        for at in self.tsc:
            time = (struct.unpack_from("<Q", trace, at + 1)[0] & (1 << 56) - 1) + n * self.step
            trace[at + 1 : at + 8] = time.to_bytes(7, "little")
        return bytes(trace)

    def damaged(self, trace, n):
        """The n-th ring of those that are."""
        data, at = bytearray(trace), self.psbs[(7 * n + 3) % len(self.psbs)] + 20 + n
        what = NO_PACKETS if n % 2 == 0 else OVF
        data[at : at + len(what)] = what
        return bytes(data)


def stamped(source, record, pid, tid, cpu):
    """The record as one of that thread, on that CPU."""
    record = bytearray(record)
    struct.pack_into("<II", record, len(record) - TRAILER, pid, tid)
    struct.pack_into("<I", record, len(record) - 16, cpu)
    if struct.unpack_from("<I", record)[0] in (MMAP, MMAP2, COMM):
        struct.pack_into("<II", record, 8, pid, tid)
    return bytes(record)


def made(source, kind, misc, body, pid, tid, time, cpu):
    trailer = struct.pack("<IIQII", pid, tid, time, cpu, 0) + source.id
    return struct.pack("<IHH", kind, misc, 8 + len(body) + len(trailer)) + body + trailer


def main():
    stalltrap, path, out, kind, rings, slots = *sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6])
    threads = int(sys.argv[7]) if len(sys.argv) > 7 else 1
    damage = len(sys.argv) > 8 and sys.argv[8] == "damage"
    of_cpus = kind == "cpu"
    source = Source(stalltrap, path)
    records = list(source.shared)
    for i in range(rings):
        pid, tid = 100000 + i // threads * 1000, 100000 + i // threads * 1000 + i % threads
        if tid == pid:
            records += [stamped(source, r, pid, tid, i) for r in source.own]
        else:
            records.append(made(source, FORK, 0, struct.pack("<IIIIQ", pid, pid, tid, pid, source.time), pid, tid, source.time, i))
        for n in range(slots):
            cpu, begin = (i + n) % rings if of_cpus else i, source.first + n * source.step
            records.append(made(source, SWITCH, 0, b"", pid, tid, begin - 1000, cpu))
            records.append(made(source, SWITCH, OUT, b"", pid, tid, begin + source.last - source.first + 1000, cpu))
    pieces = [source.slot(n) for n in range(slots)]
    size = slots * len(source.trace)
    for i in range(rings):
        head = bytearray(source.ring)
        struct.pack_into("<QQ", head, 8, size, 0)
        tid = 0xFFFFFFFF if of_cpus else 100000 + i // threads * 1000 + i % threads
        struct.pack_into("<III", head, 32, i, tid, i if of_cpus else 0xFFFFFFFF)
        bad = damage and i % 3
        records.append(bytes(head))
        records += [source.damaged(p, 2 * i + bad) if bad and n == slots // 2 else p for n, p in enumerate(pieces)]
    more = sum(map(len, records)) - (source.end - source.begin)
    header = bytearray(source.raw[: source.begin])
    struct.pack_into("<Q", header, 48, source.end - source.begin + more)
    tail = bytearray(source.raw[source.end :])
    for i in range(sum(bin(b).count("1") for b in header[72:104])):
        struct.pack_into("<Q", tail, 16 * i, struct.unpack_from("<Q", tail, 16 * i)[0] + more)
    with open(out, "wb") as f:
        f.writelines([header, *records, tail])


main()
