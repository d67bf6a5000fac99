#!/usr/bin/env python3
"""age_recording.py DATA OUT TURNS: a recording of `--source step`, as a machine that has been up for longer makes it: its TSC is past
2^56 * TURNS, of which the packets hold the lower 56 bits; the perf clock is the same."""
import struct
import sys

AUXTRACE_INFO, AUXTRACE, TIME_CONV = 70, 71, 79
TYPE_INTEL_PT = 1
REFERENCE = 24  # in struct pd_auxtrace
TIME_ZERO = 3  # of the words of PD_RECORD_AUXTRACE_INFO
MASK = (1 << 64) - 1


def add(data, at, more):
    struct.pack_into("<Q", data, at, (struct.unpack_from("<Q", data, at)[0] + more) & MASK)


def main():
    with open(sys.argv[1], "rb") as f:
        data = bytearray(f.read())
    ticks = int(sys.argv[3]) << 56
    at, size = struct.unpack_from("<QQ", data, 40)  # the data section
    end, rings = at + size, 0
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == AUXTRACE_INFO:
            assert struct.unpack_from("<I", data, at + 8)[0] == TYPE_INTEL_PT
            add(data, at + 16 + 8 * TIME_ZERO, -ticks)
        elif kind == TIME_CONV:
            add(data, at + 24, -ticks)
        elif kind == AUXTRACE:
            add(data, at + REFERENCE, ticks)
            size += struct.unpack_from("<Q", data, at + 8)[0]
            rings += 1
        at += size
    assert rings
    with open(sys.argv[2], "wb") as out:
        out.write(data)


main()
