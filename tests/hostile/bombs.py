#!/usr/bin/env python3
"""bombs.py zstd RECORDING OUT: the recording, its records replaced by compressed ones of some KB that open to 250 MB each.
bombs.py dwarf PROGRAM OUT SECTION: the program, with a section of it compressed that opens to 1 GiB of zeros."""
import ctypes
import struct
import sys
import zlib


class Buffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def zstd_records(n):
    z = ctypes.CDLL("libzstd.so.1")
    z.ZSTD_createCStream.restype = ctypes.c_void_p
    for f in (z.ZSTD_compressStream, z.ZSTD_flushStream):
        f.restype = ctypes.c_size_t
    z.ZSTD_initCStream.argtypes = [ctypes.c_void_p, ctypes.c_int]
    z.ZSTD_compressStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(Buffer), ctypes.POINTER(Buffer)]
    z.ZSTD_flushStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(Buffer)]
    stream = z.ZSTD_createCStream()
    z.ZSTD_initCStream(stream, 1)
    source = struct.pack("<IHH", 68, 0, 8) * (1 << 20)
    kept = ctypes.create_string_buffer(source, len(source))
    out = b""
    for _ in range(n):
        room = ctypes.create_string_buffer(1 << 20)
        to = Buffer(ctypes.addressof(room), len(room), 0)
        for _ in range(24):
            piece = Buffer(ctypes.addressof(kept), len(source), 0)
            while piece.pos < piece.size:
                z.ZSTD_compressStream(stream, ctypes.byref(to), ctypes.byref(piece))
        z.ZSTD_flushStream(stream, ctypes.byref(to))
        data = room.raw[: to.pos]
        out += struct.pack("<IHH", 81, 0, 8 + len(data)) + data
    return out


def zstd(recording, out):
    b = bytearray(open(recording, "rb").read())
    records = zstd_records(6)
    at, size = struct.unpack_from("<QQ", b, 40)
    tail = bytes(b[at + size:])
    n = sum(bin(x).count("1") for x in struct.unpack_from("<QQQQ", b, 72))
    moved = len(records) - size
    features = bytearray(tail)
    for k in range(n):
        offset, length = struct.unpack_from("<QQ", features, 16 * k)
        struct.pack_into("<QQ", features, 16 * k, offset + moved, length)
    struct.pack_into("<Q", b, 48, len(records))
    open(out, "wb").write(bytes(b[:at]) + records + features)


def dwarf(program, out, section):
    b = bytearray(open(program, "rb").read())
    table = struct.unpack_from("<Q", b, 40)[0]
    n, names = struct.unpack_from("<HH", b, 60)
    strings = struct.unpack_from("<Q", b, table + 64 * names + 24)[0]
    packer = zlib.compressobj(9)
    zeros = b"".join(packer.compress(bytes(1 << 24)) for _ in range(64)) + packer.flush()
    for i in range(n):
        head = table + 64 * i
        at = strings + struct.unpack_from("<I", b, head)[0]
        if b[at:b.index(0, at)].decode() == section:
            struct.pack_into("<Q", b, head + 8, struct.unpack_from("<Q", b, head + 8)[0] | 0x800)
            struct.pack_into("<QQ", b, head + 24, len(b), 24 + len(zeros))
            b += struct.pack("<IIQQ", 1, 0, 1 << 30, 1) + zeros
    open(out, "wb").write(b)


if __name__ == "__main__":
    (zstd if sys.argv[1] == "zstd" else dwarf)(*sys.argv[2:])
