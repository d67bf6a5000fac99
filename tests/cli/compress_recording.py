#!/usr/bin/env python3
"""compress_recording.py PIPE OUT: a perf.data in pipe form -> the same as `perf record -z` writes it: the records in one zstd stream, cut
into PERF_RECORD_COMPRESSED; what perf never compresses (attributes, features, AUX data) as it was."""
import struct
import subprocess
import sys

AUXTRACE, HEADER_FEATURE, COMPRESSED = 71, 80, 81
FEATURE_COMPRESSED, ZSTD = 27, 1
PIECE = 1000


def records(data):
    """(type, bytes) of each; AUX data is behind its record"""
    at = 16
    while at < len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == AUXTRACE:
            size += struct.unpack_from("<Q", data, at + 8)[0]
        yield kind, data[at : at + size]
        at += size


def main():
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    plain = [r for kind, r in records(data) if kind > 63 and kind != AUXTRACE]
    aux = [r for kind, r in records(data) if kind == AUXTRACE]
    rest = b"".join(r for kind, r in records(data) if kind <= 63)
    stream = subprocess.run(["zstd", "-q", "-c"], input=rest, stdout=subprocess.PIPE, check=True).stdout
    feature = struct.pack("<QIIIII4x", FEATURE_COMPRESSED, 1, ZSTD, 3, 3, len(rest))
    with open(sys.argv[2], "wb") as out:
        out.write(data[:16])
        out.write(struct.pack("<IHH", HEADER_FEATURE, 0, 8 + len(feature)) + feature)
        out.write(b"".join(plain))
        for i in range(0, len(stream), PIECE):
            piece = stream[i : i + PIECE]
            out.write(struct.pack("<IHH", COMPRESSED, 0, 8 + len(piece)) + piece)
        out.write(b"".join(aux))


main()
