#!/usr/bin/env python3
"""more_state.py TRACE OUT: a raw trace whose every PSB+ tells more, as on a host that runs virtual machines: VMCS and PIP packets.
The list of its packets (`decode --dump packets`) is read from stdin."""
import sys

VMCS = bytes([0x02, 0xC8, 0x45, 0x23, 0x01, 0, 0])
PIP = bytes([0x02, 0x43, 0x00, 0x34, 0x12, 0, 0, 0])

with open(sys.argv[1], "rb") as f:
    trace = f.read()
out, done = bytearray(), 0
for line in sys.stdin:
    words = line.split()
    if len(words) == 2 and words[1] == "psbend":
        at = int(words[0], 16)
        out += trace[done:at] + VMCS + PIP
        done = at
out += trace[done:]
with open(sys.argv[2], "wb") as f:
    f.write(out)
