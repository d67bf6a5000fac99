#!/usr/bin/env python3
"""Compares what `decode` finds in a recording with libipt's instruction decoder on its bare trace: the taken branches and the counts,
of user code, each ring for itself.

usage: against_insn.py STALLTRAP INSN_WALK RECORDING [32|64 [VDSO BUILDID-DIR]]    (of a recording made elsewhere)

For recordings without loss, of one process that does not execute another program, not of the kernel. Exit 0: the same; 1: not.
"""
import collections
import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile

MMAP2, AUXTRACE, EXECUTABLE = 10, 71, 4
NO_CPU = 0xFFFFFFFF


def records(data):
    """(kind, misc, body, offset behind) of each record of a recording in file form"""
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    while at < end:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        yield kind, misc, data[at + 8 : at + length], at + length
        at += length + (struct.unpack_from("<Q", data, at + 8)[0] if kind == AUXTRACE else 0)


def trace_and_images(data):
    """{(tid, cpu): trace}, [(file, offset, size, address)]"""
    rings, images = collections.defaultdict(list), []
    for kind, _, body, behind in records(data):
        if kind == AUXTRACE:
            size, offset, _, _, tid, cpu = struct.unpack_from("<QQQIII", body)
            rings[(tid, -1) if cpu == NO_CPU else (-1, cpu)].append((offset, data[behind : behind + size]))
        elif kind == MMAP2:
            pid, _, address, size, offset = struct.unpack_from("<IIQQQ", body)
            protection = struct.unpack_from("<I", body, 56)[0]
            name = body[64:].split(b"\0")[0].decode()
            if protection & EXECUTABLE and address < 1 << 63:
                images.append((name, offset, size, address))
    return {ring: b"".join(t for _, t in sorted(pieces)) for ring, pieces in rings.items()}, images


def vdso_of_this_machine():
    with open("/proc/self/maps", encoding="ascii") as maps:
        line = next(line for line in maps if line.endswith("[vdso]\n"))
    first, last = (int(a, 16) for a in line.split()[0].split("-"))
    return ctypes.string_at(first, last - first)


def write_list(images, folder, vdso):
    """images.list, of the images that can be read"""
    if not vdso:
        vdso = os.path.join(folder, "vdso")
        with open(vdso, "wb") as out:
            out.write(vdso_of_this_machine())
    path = os.path.join(folder, "images.list")
    with open(path, "w", encoding="utf-8") as out:
        for name, offset, size, address in images:
            name = vdso if name == "[vdso]" else name
            if os.path.isfile(name):
                size = min(size, os.path.getsize(name) - offset)
                out.write(f"{name} {offset:#x} {size:#x} {address:#x}\n")
    return path


def ours(stalltrap, recording, options):
    """{(tid, cpu): ["from to"]} of the branches with both ends; counts"""
    rings = collections.defaultdict(list)
    dump = subprocess.run([stalltrap, "decode", *options, "--dump", "branches", recording], capture_output=True, text=True, check=True)
    for line in dump.stdout.splitlines():
        _, tid, cpu, source, target, kind, _ = line.split(" ", 6)
        if kind == "gap":
            sys.exit(f"a gap: {line}")
        if not kind.startswith("tr-") and source != "0" and target != "0":
            rings[int(tid), -1].append(f"{source} {target}")
            rings[-1, int(cpu)].append(f"{source} {target}")
    stats = subprocess.run([stalltrap, "decode", *options, "--stats", recording], capture_output=True, text=True, check=True)
    return rings, json.loads(stats.stdout)


def main():
    stalltrap, walk, recording, *rest = sys.argv[1:]
    bits, elsewhere = rest[:1], rest[1:]
    path = os.path.join(recording, "data") if os.path.isdir(recording) else recording
    with open(path, "rb") as source:
        traces, images = trace_and_images(source.read())
    found, stats = ours(stalltrap, recording, ["--buildid-dir", elsewhere[1]] if elsewhere else [])
    total, branches, bad = collections.Counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        image_list = write_list(images, folder, elsewhere and elsewhere[0])
        for ring, trace in sorted(traces.items()):
            file = os.path.join(folder, "trace")
            with open(file, "wb") as out:
                out.write(trace)
            run = subprocess.run([walk, file, image_list, "6/94/3", *bits], capture_output=True, text=True, check=True)
            *known, counts = run.stdout.splitlines()
            total.update(json.loads(counts))
            branches += len(known)
            if known != found[ring]:
                bad += 1
                at = next((i for i, (a, b) in enumerate(zip(known, found[ring])) if a != b), min(len(known), len(found[ring])))
                print(f"ring {ring}: branch {at} of {len(known)} and {len(found[ring])}: {known[at:at + 2]}, ours {found[ring][at:at + 2]}")
    counted = {**stats["branches"], **stats}
    for name, number in total.items():
        if counted[name] != number:
            bad += 1
            print(f"{name}: {number}, ours {counted[name]}")
    print(f"{total['instructions']} instructions, {branches} branches in {len(traces)} rings, {bad} differences")
    return 1 if bad or not branches else 0


if __name__ == "__main__":
    sys.exit(main())
