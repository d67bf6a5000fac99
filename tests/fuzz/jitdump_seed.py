"""jitdump_seed.py FOLDER: a dump with two functions, one of them moved, and a record of another kind."""
import struct
import sys


def record(kind, body):
    return struct.pack("<IIQ", kind, 16 + len(body), 1) + body


def load(address, index, name, code=b"\xc3" * 16):
    return record(0, struct.pack("<IIQQQQ", 1, 1, address, address, len(code), index) + name + b"\0" + code)


head = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)
move = record(1, struct.pack("<IIQQQQQ", 1, 1, 0x3000, 0x1000, 0x3000, 16, 1))
debug = record(2, struct.pack("<QQ", 0x1000, 0))
with open(sys.argv[1] + "/dump", "wb") as f:
    f.write(head + load(0x1000, 1, b"one") + debug + load(0x2000, 2, b"two") + move + load(0x1008, 3, b"again"))
