"""Memory as fuzz_python.c looks at it: an interpreter, its thread, a frame, a code object with strings and a table of lines."""
import struct
import sys


def word(*values):
    return b"".join(struct.pack("<Q", value) for value in values)


def string(text, size, head):
    kind = 1 if max(map(ord, text)) < 256 else 2
    state = kind << 2 | 1 << 5 | (1 << 6 if text.isascii() else 0)
    raw = text.encode("latin-1" if kind == 1 else "utf-16-le")
    return (word(1, 2, len(text), 3, state).ljust(head, b"\0") + (b"" if text.isascii() else bytes(size)) + raw).ljust(128, b"\0")


for first, name, head, more in ((0, "call", 40, 16), (1, "naïve", 40, 16), (2, "名前", 48, 24), (3, "x", 48, 24)):
    base = 64
    # _PyRuntime at 0: the interpreter at 8
    memory = word(first, base).ljust(base, b"\0")
    memory += word(0, 128).ljust(64, b"\0")  # interpreter: threads
    memory += word(0, 1, 192 if not first & 1 else 184).ljust(64, b"\0")  # thread
    memory += word(0, 256, 310, 0).ljust(64, b"\0")  # frame
    memory += word(0, 8, 384, 384, 512, 7).ljust(128, b"\0")  # code
    memory += string(name, more, head)  # at 384
    table = bytes([0x80 | 11 << 3 | 1, 1, 2, 0x80 | 14 << 3, 4, 0, 1, 1, 0x80 | 13 << 3 | 7, 3, 0x80 | 15 << 3, 0x80, 0])
    memory += word(1, 2, len(table), 0) + table
    open(f"{sys.argv[1]}/frames{first}", "wb").write(memory)
