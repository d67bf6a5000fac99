#!/usr/bin/env python3
"""Names of a database that rules for whole listings leave open, by what other programs say of the same.

usage: check_names.py plt TRACE.db          each NAME@plt against the relocation that its entry jumps through (objdump, readelf -r)
       check_names.py tails TRACE.db PERF   each tail call (flag 4) against a jump of perf's to its first instruction

PERF is what `perf script --itrace=be --ns -F event,tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso` printed. Exit 0: all are right; 1: the
wrong ones were printed; 2: an input that cannot be understood.
"""
import bisect
import collections
import os
import re
import sqlite3
import subprocess
import sys

import normalize_calls as normalize

ENTRY = 16  # bytes of an entry of a PLT


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def slots(path):
    """Address of an instruction -> slot of the GOT that it jumps through, of the PLTs of a file"""
    found = {}
    for line in run("objdump", "-d", "--no-show-raw-insn", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path).splitlines():
        m = re.match(r"\s*([0-9a-f]+):\s+(?:bnd |notrack )?jmp\s+\*(?:0x[0-9a-f]+\(%rip\)\s+# ([0-9a-f]+)|0x([0-9a-f]+)$)", line)
        if m:
            found[int(m[1], 16)] = int(m[2] or m[3], 16)
    return found


def relocations(path):
    """Slot -> (name or None, address of the function where it has none)"""
    found = {}
    for line in run("readelf", "-rW", path).splitlines():
        words = line.split()
        if len(words) >= 3 and words[2].startswith("R_"):
            irelative = "IRELATIV" in words[2]
            name = None if irelative or len(words) < 5 else words[4].split("@")[0]
            found[int(words[0], 16)] = (name, int(words[3], 16) if irelative and len(words) > 3 else 0)
    return found


def functions(path):
    """Address -> names"""
    found = collections.defaultdict(set)
    for line in run("readelf", "-sW", path).splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit() and words[6] != "UND":
            found[int(words[1], 16)].add(words[7].split("@")[0])
    return found


def check_plt(db):
    bad = judged = 0
    modules = collections.defaultdict(list)
    for path, name, address in db.execute("SELECT m.path, s.name, s.address FROM symbol s JOIN module m ON m.id = s.module_id WHERE s.name LIKE '%@plt'"):
        modules[path].append((name[:-4], address))
    for path, entries in modules.items():
        if not os.path.exists(path):
            continue
        jumps, relocated, named = slots(path), relocations(path), functions(path)
        starts = sorted(jumps)
        for name, address in entries:
            i = bisect.bisect_left(starts, address)
            slot = jumps[starts[i]] if i < len(starts) and starts[i] < address + ENTRY else None
            wanted, resolver = relocated.get(slot, (None, 0))
            right = {wanted} if wanted else named[resolver]
            judged += 1
            if name not in right:
                print(f"{path}: at {address:#x} we say {name}@plt, its slot {slot and hex(slot)} is relocated by {sorted(right)}")
                bad += 1
    print(f"{judged} entries of PLTs, {bad} have another name")
    return bad


def jumps_of(path):
    """thread -> (the times that perf tells, in order; the jumps, in order)"""
    threads = {}
    for (tid, _), branches in normalize.read_perf(path).items():
        # A thunk of returns, and setcontext(), jump by a return.
        jumps = [b for b in branches if b.kind in ("jmp", "jcc", "end jmp") or (b.kind == "return" and b.target_name[1] == 0)]
        threads[tid] = (sorted({b.time for b in branches}), sorted(jumps, key=lambda b: b.time))
    return threads


def near(times, jumps, time):
    """The jumps that may have been at `time` by T1 of normalize_calls.py."""
    if not times:
        return []
    at = bisect.bisect_left(times, time)
    # What perf gives the time before or behind may be ours, and so may what it gives the next but one where ours is that.
    first, last = times[max(at - 2, 0)], times[min(at + 2, len(times) - 1)]
    low = bisect.bisect_left(jumps, first, key=lambda b: b.time)
    return jumps[low : bisect.bisect_right(jumps, last, key=lambda b: b.time)]


def check_tails(db, path):
    bad = judged = 0
    origin = int(db.execute("SELECT value FROM meta WHERE key = 'origin_perf_ns'").fetchone()[0])
    threads = jumps_of(path)
    for tid, function, start in db.execute("SELECT tid, function, start_ns FROM calls WHERE flags & 5 = 4 ORDER BY tid, id"):
        judged += 1
        if not any(normalize.same_place(b.target_name, (function, 0)) for b in near(*threads.get(tid, ([], [])), origin + start)):
            print(f"thread {tid}: a tail call of {function} at {origin + start} ns, where perf has no jump to it")
            bad += 1
    print(f"{judged} tail calls, {bad} are no jumps of perf's")
    return bad


def main():
    mode, *files = sys.argv[1:] or [""]
    if len(files) != {"plt": 1, "tails": 2}.get(mode, 0):
        sys.exit(__doc__)
    try:
        db = sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)
        return 1 if (check_plt(db) if mode == "plt" else check_tails(db, files[1])) else 0
    except (normalize.BadInput, OSError, sqlite3.Error, subprocess.CalledProcessError) as error:
        print(f"check_names.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
