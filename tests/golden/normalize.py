#!/usr/bin/env python3
"""normalize.py perf|stalltrap [FILE]: brings two listings of one recording to the same form, so that diff tells whether they agree.

perf:      perf script --itrace=cre -F pid,tid,cpu,time,flags,ip,addr,sym,symoff,dso (time and cpu may be missing)
stalltrap: stalltrap decode --dump calls
(or --itrace=be and --dump branches).

Output: "TID KIND FROM TO" a line, the threads one after the other, each in the order of its listing; TID is "0.CPU" for the idle thread
that each CPU has (of the same tid 0, so that two listings may mix them differently). KIND is one of call,
return, jcc, jmp, syscall, iret, int, start, end. Names, times and CPUs are left out: names are a matter of taste where several symbols
share an address, and perf counts time in its own way.

The rules by which the two differ on the same trace, all there are:
 1. perf prints a branch that leaves the traced code as one line ("tr end  syscall"), stalltrap as two (syscall, tr-end).
 2. perf names the ways into the kernel and out of it (syscall, int; sysret, iret); stalltrap the classes far call and far return.
 3. "start" behind a gap: stalltrap tells where decoding goes on, perf prints nothing there unless tracing was off. Gaps themselves are
    printed at different places of the listing. Both are left out.
"""
import re
import sys

PERF = re.compile(
    r"^\s*(?:\S.*\s)??(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?:\[(?P<cpu>-?\d+)\]\s+)?(?:[\d.]+:\s+)?(?P<flags>[a-z]\D*?[a-z)]?(?: \(x\))?)\s+"
    r"(?P<from>[0-9a-f]+) .*? =>\s+(?P<to>[0-9a-f]+)(?: |$)"
)
# A sample of another event (the stall records): it has no flags.
OTHER = re.compile(r"^\s*-?\d+/-?\d+\s+(?:\[-?\d+\]\s+)?(?:[\d.]+:\s+)?0\s+0 \[unknown\] \(\[unknown\]\)\s*$")
PERF_KINDS = {
    "call": "call", "return": "return", "jmp": "jmp", "jcc": "jcc", "syscall": "syscall", "sysret": "iret", "iret": "iret",
    "int": "syscall", "hw int": "int", "async": None, "tr strt": "start", "tx abrt": "int",
}  # fmt: skip
OURS_KINDS = {
    "call": "call", "return": "return", "jmp": "jmp", "jcc": "jcc", "syscall": "syscall", "iret": "iret", "farjmp": "jmp", "int": "int",
    "tr-start": "start", "tr-end": "end",
}  # fmt: skip


class Bad(Exception):
    pass


def thread(tid, cpu):
    return tid if int(tid) or cpu is None else f"0.{int(cpu)}"


def perf_line(line):
    """The normal lines of one line of perf script: [(tid, kind, from, to)]."""
    if "instruction trace error" in line:
        return [(thread(re.search(r"\btid (-?\d+)", line)[1], re.search(r"\bcpu (-?\d+)", line)[1]), "gap", 0, 0)]
    if OTHER.match(line):
        return []
    m = PERF.match(line)
    if not m:
        raise Bad(line)
    tid, source, target = thread(m["tid"], m["cpu"]), int(m["from"], 16), int(m["to"], 16)
    flags = re.sub(r"\s*\(x\)", "", m["flags"]).strip()
    words = re.match(r"(tr end)?\s*(.*)", flags)
    if words[2] not in PERF_KINDS and words[2]:
        raise Bad(line)
    kind = PERF_KINDS.get(words[2])
    out = [(tid, kind, source, target)] if kind else []
    if words[1]:
        out.append((tid, "end", source, 0))
    return out


def our_line(line):
    words = line.split()
    kind = words[5].split("+")[0]
    if kind in ("gap", "ptwrite"):
        return [(thread(words[1], words[2]), "gap", 0, 0)] if kind == "gap" else []
    if kind not in OURS_KINDS:
        raise Bad(line)
    return [(thread(words[1], words[2]), OURS_KINDS[kind], int(words[3], 16), int(words[4], 16))]


def normal(lines, parse):
    threads = {}
    for line in lines:
        if not line.strip():
            continue
        for tid, kind, source, target in parse(line):
            out, after_gap = threads.setdefault(tid, ([], [False]))
            if kind == "gap":
                after_gap[0] = True
                continue
            if not (kind == "start" and after_gap[0]):
                out.append(f"{tid} {kind} {source:x} {target:x}")
            after_gap[0] = False
    for tid in sorted(threads):
        yield from threads[tid][0]


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ("perf", "stalltrap"):
        sys.exit(__doc__)
    source = open(sys.argv[2], encoding="utf-8", errors="replace") if len(sys.argv) == 3 else sys.stdin
    try:
        for line in normal(source, perf_line if sys.argv[1] == "perf" else our_line):
            print(line)
    except Bad as bad:
        sys.exit(f"normalize.py: no such line in a listing of {sys.argv[1]}: {bad}")


if __name__ == "__main__":
    main()
