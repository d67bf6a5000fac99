#!/usr/bin/env python3
"""psb_storm.py OUT SIZE: a raw trace of a CPU that idles with tracing on: PSB+ and MTC packets alone, up to SIZE bytes."""
import sys

PSB, PSBEND = bytes([0x02, 0x82]) * 8, bytes([0x02, 0x23])
TSC = bytes([0x19]) + (1000).to_bytes(7, "little")
TMA = bytes([0x02, 0x73, 0, 0, 0, 0, 0])
VMCS = bytes([0x02, 0xC8, 0, 0, 0, 0, 0])

out, n, size = bytearray(PSB + TSC + TMA + PSBEND), 0, int(sys.argv[2])
while len(out) < size:
    out += PSB + VMCS + PSBEND
    for _ in range(3):
        out += bytes([0x59, n & 0xFF])
        n += 1
with open(sys.argv[1], "wb") as f:
    f.write(out)
