#!/usr/bin/env python3
"""Compares the calls and returns that perf, `decode --dump calls` and the trace database tell of one recording.

usage: normalize_calls.py [--times-within NS] MODE FILE...
       normalize_calls.py dump PERF DUMP [KALLSYMS]        PERF against `stalltrap decode --dump calls`
       normalize_calls.py gaps PERF DUMP [KALLSYMS]        the same, where gaps are allowed
       normalize_calls.py cpus PERF DUMP [KALLSYMS]        the same as dump, CPU by CPU, of rings of CPUs with kernel code
       normalize_calls.py rows PERF TRACE.db [DUMP]        PERF against the calls of the database
       normalize_calls.py perf PERF                        PERF alone, normalised

PERF is what `perf script --itrace=cre --ns -F event,tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso` printed (event, cpu
and time may be missing; --itrace=be goes with --dump branches). KALLSYMS: the recording's, where kernel code is in it.
Exit 0: no difference; 1: the first differences were printed; 2: an input that cannot be understood, a decoding
error or a gap in it included (mode gaps: a gap is compared).

What is compared: kind, both addresses, and the function and offset at both (dump: where the branch led), in their
order, thread by thread (the two tools interleave threads as their times fall), and the time. These rules, and no others, make the
listings comparable; test_normalize.sh tests each.

Time:
  T1  (times-within: that much later or earlier is no difference; how many are so is printed) A branch's time is known to lie between two packets that tell one. perf gives it the time of the one before it, or guesses; we spread
      the branches between the two. Ours must lie between the last other time that perf tells before its own and the first other one behind it,
      in the same thread (cpus: on the same CPU). Before its first and behind its last time there is no bound. Where perf tells no time, none
      is compared.

Listing of perf:
  P1  Samples of other events than the trace's ("branches") are left out.
  P2  "tr strt" is `start`; "tr end  KIND" is `end KIND` ("tr end  async", "tr end  syscall"); KIND alone is `KIND`.
  P3  perf tells the ways into the kernel and out of it apart, we name their classes: sysret is `iret`, "int" is `syscall`,
      "hw int" and "tx abrt" are `int`.
  P4  The thread of "tid 0" is one idle thread a CPU.
Dump:
  D1  "tr-start" is `start` (its marks are left out), "tr-end+async" is `end async`; "KIND" without a target and the
      "tr-end" behind it, at the same place, are one `end KIND`.
  D2  Marks behind other kinds ("+indirect") are left out.
  D3  "farjmp" is `jmp`.
CPUs (mode cpus, and rows with DUMP, whose threads are then taken for those of PERF):
  C1  A thread that got a CPU is traced some kernel branches before the kernel writes its context-switch record. perf gives
      these to the thread that ran there before (or to none, -1; where they are the CPU's first, to whoever ran there untraced),
      we give them to the thread itself: from a `start` in the kernel on, or where tracing goes on over the switch (both threads
      inherited one event) from __switch_to on, at most MAX_EARLY branches may be of different threads. All others are of the same.
  C2  (rows) A thread's turns on several CPUs follow one another as their first branches' times in DUMP do. A turn begins where the CPU
      gets the thread or tracing starts.
Gaps (mode gaps):
  G1  An "instruction trace error" is a gap, and stands at the same place of the thread. One of "Overflow packet" is an
      "overflow", any other none.
  G2  Our gap "overwritten" (what a ring held before) is none that perf tells of.
  G3  Behind a gap we tell where decoding goes on ("tr-start"); perf does not, unless tracing was off. Behind is what comes
      next of the thread, or of the thread on the gap's CPU: between the two it may have run on another CPU, whose ring has no gap.
Names:
  N1  A symbol's version ("memcpy@@GLIBC_2.14") is left out.
  N2  perf 6.1 names an entry of a PLT "@plt", after another entry (it counts them wrongly where some are of IFUNCs), after
      the symbol before it ("_init+0x40"), or not at all. Where we say "NAME@plt+0x0" it may say any of these (and where
      the lazy part of an entry begins, "NAME@plt+0x6", likewise).
  N3  "[FILE+0xOFFSET]", code without a symbol, is unknown to perf, or "_init+0xOFFSET" (the head of the PLT).
  N4  perf's C++ names have parameters or not, as the symbol's demangling goes; ours have none, but those of a JIT compiler are what it says. Parameters are left out.
  N5  Where KALLSYMS has several names for one address, each of them may stand for the others.
Database (its rows, in the order of their ids, are walked as one tree a thread; a row begins with `call FUNCTION` and
ends with `return FUNCTION`; perf's `return FUNCTION` names the function whose call it ends, not the one that holds the
instruction, which may be a tail call's, or a part that functions share):
  R1  Rows that no call instruction began have no `call`: call not seen (flag 1), tail call (flag 4), the stand-ins
      [syscall], [interrupt], [signal] and [untraced], signal handlers (the children of [signal]), the outermost row of a thread.
      So do the kernel's entries (KERNEL_ENTRIES): an interrupt, an exception or a system call began them.
  R2  Rows that no return instruction ended have no `return`: those without `call`, those with flag 2 (return not seen).
      Where the next row of the same parent has flag 4 the function ended in a tail call; the last of such a chain has the
      `return` of its first.
  R3  perf's calls to the next instruction, and calls into the middle of the calling function, are no calls of functions
      and have no row.
  R4  A return of perf's ends the innermost open call that it goes back behind (the lowest address behind the call, at most
      MAX_INSTRUCTION bytes away, that any return goes to); calls inside of that one (left by longjmp or
      an exception) have flag 2. One that goes back behind none (to another stack, from a signal handler, out of a frame
      inherited by fork) has no `return`.
  R5  A call to one of the kernel's indirect thunks (__x86_indirect_thunk_*) is a call of the function that it led to, whose
      name perf's listing does not tell: any.
  R6  Where tracing starts in the kernel a call to __switch_to_asm that is still open has returned meanwhile, unseen: the thread has got
      its CPU back.
"""
import bisect
import collections
import itertools
import re
import sqlite3
import sys

PERF_LINE = re.compile(
    r"^\s*(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?:\[(?P<cpu>-?\d+)\]\s+)?(?:(?P<time>[\d.]+):\s+)?(?:(?P<event>\S+):\s+)?(?P<flags>[a-z].*?)??\s+"
    r"(?P<ip>[0-9a-f]+) (?P<from>.+?) \((?P<fromdso>[^()]*)\)"
    r"(?: =>\s+(?P<addr>[0-9a-f]+) (?P<to>.+?) \((?P<todso>[^()]*)\))?\s*$"
)
OTHER_EVENT = re.compile(r"^\s*-?\d+/-?\d+\s+(?:\[[-\d]+\]\s+)?(?:[\d.]+:\s+)?(?!branches:)[a-z]\S*:\s")
PERF_ERROR = re.compile(r"^ instruction trace error type \d+ .*\bcpu (?P<cpu>-?\d+) .*\btid (?P<tid>-?\d+) .* code \d+: (?P<text>.*)$")
PERF_KINDS = {
    "call": "call", "return": "return", "jmp": "jmp", "jcc": "jcc", "syscall": "syscall", "sysret": "iret", "iret": "iret",
    "int": "syscall", "hw int": "int", "tx abrt": "int", "async": "async", "": "",
}  # fmt: skip
OUR_KINDS = {"call", "return", "jmp", "jcc", "syscall", "iret", "farjmp", "int", "tr-start", "tr-end"}
UNKNOWN = ("[unknown]", None)
# Bytes of the longest x86 instruction.
MAX_INSTRUCTION = 15
# Branches from the start of tracing in a thread that got its CPU to the record of that (C1).
MAX_EARLY = 200
KERNEL = 1 << 63

# `time` in ns, or None.
Branch = collections.namedtuple("Branch", "kind source target source_name target_name time", defaults=[None])
Call = collections.namedtuple("Call", "kind place time", defaults=[None])


class BadInput(Exception):
    """An input that is not what it should be."""


def without_parameters(name):
    """N4"""
    return re.sub(r"\(.*\)( const)?( \[clone [^]]*\])*$", "", name) or name


def plain_name(name):
    """N1, N4"""
    return without_parameters(re.sub(r"@@?(?!plt$)[A-Za-z_][\w.]*$", "", name))


def perf_place(text):
    """(name, offset) of "NAME+0xOFFSET" """
    if text == "[unknown]":
        return UNKNOWN
    name, plus, offset = text.rpartition("+0x")
    if not plus:
        raise BadInput(f"a symbol without an offset: {text}")
    return plain_name(name), int(offset, 16)


def thread_of(tid, cpu):
    """P4: (tid, CPU of the idle thread or None)"""
    return int(tid), int(cpu) if int(tid) == 0 and cpu is not None else None


def perf_kind(flags):
    """P2, P3"""
    words = re.sub(r"\s*\(x\)", "", flags or "").split()
    prefix = ""
    if words[:2] == ["tr", "strt"]:
        return "start" if words[2:] == [] else None
    if words[:2] == ["tr", "end"]:
        prefix, words = "end ", words[2:]
    kind = PERF_KINDS.get(" ".join(words))
    return None if kind is None else (prefix + kind).strip()


def nanoseconds(text):
    """Of "12.000000001"; None: no time, or none of that precision."""
    seconds, _, fraction = (text or "").partition(".")
    return int(seconds + fraction) if len(fraction) == 9 else None


def perf_branch(m):
    names = perf_place(m["from"]), perf_place(m["to"] or "[unknown]")
    return Branch(perf_kind(m["flags"]), int(m["ip"], 16), int(m["addr"] or "0", 16), *names, nanoseconds(m["time"]))


def read_perf(path, gaps=False):
    """thread -> branches"""
    threads = collections.defaultdict(list)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            error = PERF_ERROR.match(line)
            if error and gaps:
                kind = "gap overflow" if error["text"] == "Overflow packet" else "gap"  # G1
                threads[thread_of(error["tid"], error["cpu"])].append(Branch(kind, 0, 0, UNKNOWN, UNKNOWN))
                continue
            if not line.strip() or OTHER_EVENT.match(line):  # P1
                continue
            m = PERF_LINE.match(line)
            branch = perf_branch(m) if m else None
            if not branch or branch.kind is None:
                raise BadInput(f"{path}:{number}: not understood: {line.rstrip()}")
            threads[thread_of(m["tid"], m["cpu"])].append(branch)
    return threads


def dump_place(text):
    """(name, offset) of a dump's symbol"""
    name, plus, offset = text.rpartition("+0x")
    return (without_parameters(name), int(offset, 16)) if plus else UNKNOWN


def dump_branch(thread, source, target, kind, symbol, time):
    """D1, D2, D3: the next branch of a thread"""
    kind, *marks = kind.split("+")
    if kind not in OUR_KINDS:
        raise BadInput(f"a branch of kind '{kind}'")
    names = (None, dump_place(symbol)) if target else (dump_place(symbol), UNKNOWN)
    if kind == "tr-start":
        kind = "start"
    elif kind == "tr-end" and "async" in marks:
        kind = "end async"
    elif kind == "tr-end" and thread and thread[-1].source == source and not thread[-1].target:
        kind = "end " + thread.pop().kind
    elif kind == "tr-end":
        kind = "end"
    elif kind == "farjmp":
        kind = "jmp"
    return Branch(kind, source, target, *names, time)


def read_dump(path, gaps=False):
    """thread -> branches; source_name is None where the dump does not tell it"""
    threads = collections.defaultdict(list)
    cpus_behind_gap = set()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.rstrip("\n").split(" ", 6)
            if len(fields) != 7 or (fields[5] == "gap" and not gaps):
                raise BadInput(f"{path}:{number}: a gap, or not a line of a dump: {line.rstrip()}")
            time, tid, cpu, source, target, kind, symbol = fields
            thread = threads[thread_of(tid, cpu)]
            if kind != "gap":
                branch = dump_branch(thread, int(source, 16), int(target, 16), kind, symbol, nanoseconds(time))
                behind_gap = (tid, cpu) in cpus_behind_gap or (thread and thread[-1].kind.startswith("gap"))
                cpus_behind_gap.discard((tid, cpu))
                thread.append(branch._replace(kind="restart") if behind_gap and branch.kind == "start" else branch)
            else:
                reason = symbol.partition(":")[0]
                kind = "gap " + reason if reason in ("overflow", "overwritten") else "gap"  # G1
                thread.append(Branch(kind, 0, 0, UNKNOWN, UNKNOWN))
                cpus_behind_gap.add((tid, cpu))
    return threads


def read_perf_cpus(path):
    """CPU -> [(tid, branch)]"""
    cpus = collections.defaultdict(list)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or OTHER_EVENT.match(line):  # P1
                continue
            m = PERF_LINE.match(line)
            branch = perf_branch(m) if m and m["cpu"] else None
            if not branch or branch.kind is None:
                raise BadInput(f"{path}:{number}: not understood, or without a CPU: {line.rstrip()}")
            cpus[int(m["cpu"])].append((int(m["tid"]), branch))
    return cpus


def read_dump_cpus(path):
    """CPU -> [(tid, branch, time in ns)]"""
    cpus = collections.defaultdict(list)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.rstrip("\n").split(" ", 6)
            if len(fields) != 7 or fields[5] == "gap":
                raise BadInput(f"{path}:{number}: a gap, or not a line of a dump: {line.rstrip()}")
            time, tid, cpu, source, target, kind, symbol = fields
            time = nanoseconds(time)
            cpu = cpus[int(cpu)]
            last = [cpu[-1][1]] if cpu and cpu[-1][0] == int(tid) else []
            waiting = len(last)
            branch = dump_branch(last, int(source, 16), int(target, 16), kind, symbol, time)
            if len(last) < waiting:
                cpu.pop()  # D1
            cpu.append((int(tid), branch, time))
    return cpus


def other_thread(perf, ours):
    """C1: where in the lists of one CPU the threads differ and should not, or None"""
    early = MAX_EARLY
    before = -1  # perf's thread of what is early
    for i, ((theirs, branch), (tid, *_)) in enumerate(zip(perf, ours)):
        if branch.source_name[0] == "__switch_to" or (branch.kind == "start" and branch.target & KERNEL):
            if i == 0 or early >= MAX_EARLY:
                before = perf[max(i - 1, 0)][0]
            early = 0
        elif theirs == tid:
            early = MAX_EARLY
        else:
            early += 1
        if theirs != tid and (early >= MAX_EARLY or theirs not in (before, -1)):
            return i
    return None


def compare_cpus(perf, ours):
    """Number of CPUs with a difference; prints the first of each."""
    bad = compare(
        {cpu: [b for _, b in branches] for cpu, branches in perf.items()},
        {cpu: [b for _, b, _ in branches] for cpu, branches in ours.items()},
        same_branch,
        "CPU",
    )
    for cpu in sorted(perf):
        i = other_thread(perf[cpu], ours.get(cpu, []))
        if i is not None:
            print(f"CPU {cpu}, number {i}: of other threads:\n  perf: {perf[cpu][i]}\n  ours: {ours[cpu][i]}")
            bad += 1
    return bad


def perf_of_our_threads(perf, ours):
    """C1, C2: thread -> perf's branches, of the threads that we give them to"""
    turns = collections.defaultdict(list)  # thread -> [(time, CPU, branches)]
    for cpu in sorted(perf):
        if len(perf[cpu]) != len(ours[cpu]):
            raise BadInput(f"CPU {cpu}: the listings differ: compare them with cpus first")
        before = None
        for (_, branch), (tid, _, time) in zip(perf[cpu], ours[cpu]):
            if tid != before or branch.kind == "start":
                turns[tid, None].append((time, cpu, []))
            turns[tid, None][-1][2].append(branch)
            before = tid
    return {tid: [b for turn in sorted(of, key=lambda t: t[:2]) for b in turn[2]] for tid, of in turns.items()}


def without_restarts(perf, ours):
    """G2, G3: our branches without what perf does not tell of gaps"""
    out = []
    for b in ours:
        if b.kind == "restart" and len(out) < len(perf) and perf[len(out)].kind == "start":
            b = b._replace(kind="start")
        if b.kind not in ("gap overwritten", "restart"):
            out.append(b)
    return out


def read_aliases(path):
    """N5: name -> address"""
    with open(path, encoding="utf-8", errors="replace") as lines:
        found = [line.split() for line in lines]
    return {words[2]: words[0] for words in found if len(words) >= 3 and words[0].strip("0")}


aliases = {}
times_within = 0  # ns
KERNEL_ENTRIES = ("asm_exc_", "asm_sysvec_", "asm_common_interrupt", "asm_spurious_interrupt", "entry_SYSCALL_", "irq_entries_start",
                  "__irqentry_text_start")
STAND_INS = ("[syscall]", "[interrupt]", "[signal]", "[untraced]")


def same_place(perf, ours):
    """N2, N3, N5"""
    if ours is None or perf == ours:
        return True
    name, offset = ours
    if name in aliases and perf[1] == offset and aliases.get(perf[0]) == aliases[name]:
        return True
    if name.endswith("@plt") and offset in (0, 6):
        return perf == UNKNOWN or (perf[0].endswith("@plt") and perf[1] == offset) or (perf[0] == "_init" and perf[1] > offset)
    return (perf == UNKNOWN or perf[0] == "_init") and name.startswith("[") and "+0x" in name


def same_branch(perf, ours):
    return perf[:3] == ours[:3] and same_place(perf.source_name, ours.source_name) and same_place(perf.target_name, ours.target_name)


def return_targets(threads):
    """Where returns go to, in order."""
    return sorted({b.target for branches in threads.values() for b in branches if b.kind == "return"})


def perf_calls(branches, targets):
    """R3, R4, R6: the calls and returns of a thread's branches. Their place is the function's: (name, offset)."""

    def behind(source):
        i = bisect.bisect_right(targets, source)
        return targets[i] if i < len(targets) and targets[i] - source <= MAX_INSTRUCTION else None

    calls = []
    opened = []
    for b in branches:
        if b.kind == "call":
            within = b.source_name != UNKNOWN and b.source_name[0] == b.target_name[0] and b.target_name[1]
            if within and 0 < b.target - b.source <= MAX_INSTRUCTION:
                continue
            opened.append((behind(b.source), None if within else b.target_name))
            if not within:
                calls.append(Call("call", b.target_name, b.time))
        elif b.kind == "start" and b.target & KERNEL:  # R6
            switched = next((i for i in range(len(opened) - 1, -1, -1) if opened[i][1] == ("__switch_to_asm", 0)), len(opened))
            del opened[switched:]
        elif b.kind == "return":
            back = next((i for i in range(len(opened) - 1, -1, -1) if opened[i][0] == b.target), None)
            if back is None:
                continue
            if opened[back][1]:
                calls.append(Call("return", opened[back][1], b.time))
            del opened[back:]
    return calls


class Rows:
    """The calls of a database, and what R1 and R2 say of each."""

    def __init__(self, path):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        columns = "id, tid, parent_id, depth, function, module, flags, start_ns, end_ns"
        self.origin = next((int(n) for (n,) in db.execute("SELECT value FROM meta WHERE key = 'origin_perf_ns'")), None)
        row = collections.namedtuple("Row", columns)
        self.rows = [row(*r) for r in db.execute(f"SELECT {columns} FROM calls ORDER BY tid, id")]
        self.by_id = {r.id: r for r in self.rows}
        self.tailed = set()  # rows that ended in a tail call
        self.head = {}  # first row of the chain of tail calls
        last = {}
        for r in self.rows:
            before = last.get((r.tid, r.parent_id))
            if before and r.flags & 4:
                self.tailed.add(before.id)
                self.head[r.id] = self.head.get(before.id, before)
            last[r.tid, r.parent_id] = r

    def called(self, row):
        parent = self.by_id.get(row.parent_id)
        entry = row.function.startswith(KERNEL_ENTRIES)
        return not (row.flags & 5 or row.function in STAND_INS or entry or parent is None or parent.function == "[signal]")

    def return_of(self, row):
        head = self.head.get(row.id, row)
        if row.flags & 2 or row.id in self.tailed or not self.called(head):
            return []
        return [Call("return", (head.function, 0), self.time(row.end_ns))]

    def time(self, ns):
        return None if self.origin is None else self.origin + ns

    def threads(self):
        """tid -> its calls and returns"""
        threads = collections.defaultdict(list)
        opened = []
        for row in self.rows:
            while opened and (opened[-1].tid != row.tid or opened[-1].depth >= row.depth):
                threads[opened[-1].tid] += self.return_of(opened.pop())
            opened.append(row)
            if self.called(row):
                threads[row.tid].append(Call("call", (row.function, 0), self.time(row.start_ns)))
        while opened:
            threads[opened[-1].tid] += self.return_of(opened.pop())
        return threads


def same_call(perf, ours):
    if perf[1] != UNKNOWN and perf[1][0].startswith("__x86_indirect_thunk_"):  # R5
        return perf[0] == ours[0]
    return perf[0] == ours[0] and same_place(perf[1], ours[1])


def other_times(perf, ours):
    """T1: (number, ns beyond the bound) where the times of two lists that are the same else differ"""
    times = sorted({a.time for a in perf if a.time is not None})
    for i, (a, b) in enumerate(zip(perf, ours)):
        if a.time is None or b.time is None:
            continue
        at = bisect.bisect_left(times, a.time)
        if at and b.time < times[at - 1]:
            yield i, times[at - 1] - b.time
        elif at + 1 < len(times) and b.time > times[at + 1]:
            yield i, b.time - times[at + 1]


def first_difference(perf, ours, same):
    """Its number and what differs, or None"""
    for i, (a, b) in enumerate(itertools.zip_longest(perf, ours)):
        if a is None or b is None or not same(a, b):
            return i, ""
    beyond = list(other_times(perf, ours))
    wrong = [i for i, ns in beyond if ns > times_within]
    if beyond and not wrong:
        print(f"{len(beyond)} times differ by at most {max(ns for _, ns in beyond)} ns more than they may")
    return (wrong[0], f", the time by {ours[wrong[0]].time - perf[wrong[0]].time} ns") if wrong else None


def compare(perf, ours, same, of="thread"):
    """Number of threads (or CPUs) with a difference; prints the first of each."""
    bad = timed = 0
    for tid in sorted(set(perf) | set(ours), key=str):
        theirs, own = perf.get(tid, []), ours.get(tid, [])
        difference = first_difference(theirs, own, same)
        timed += sum(a.time is not None and b.time is not None for a, b in zip(theirs, own))
        if difference:
            i, how = difference
            print(f"{of} {tid}, number {i}{how}:\n  perf: {(theirs[i:] or [None])[0]}\n  ours: {(own[i:] or [None])[0]}")
            bad += 1
    total = sum(len(t) for t in perf.values())
    if not timed and not bad and any(a.time is not None for t in perf.values() for a in t):
        raise BadInput("perf tells times, and we none")
    print(f"{timed} times compared")
    print(f"{len(perf)} {of}s, {total} compared, {bad} {of}s differ")
    if not total:
        raise BadInput("nothing to compare")
    return bad


def compare_dump(perf, ours):
    return compare(perf, {tid: without_restarts(perf.get(tid, []), branches) for tid, branches in ours.items()}, same_branch)


def run(mode, files):
    if mode == "cpus":
        aliases.update(read_aliases(files[2]) if len(files) == 3 else {})
        return 1 if compare_cpus(read_perf_cpus(files[0]), read_dump_cpus(files[1])) else 0
    perf = read_perf(files[0], mode == "gaps")
    if mode in ("dump", "gaps"):
        aliases.update(read_aliases(files[2]) if len(files) == 3 else {})
        return 1 if compare_dump(perf, read_dump(files[1], mode == "gaps")) else 0
    if mode == "rows":
        if len(files) == 3:
            perf = perf_of_our_threads(read_perf_cpus(files[0]), read_dump_cpus(files[2]))
        targets = return_targets(perf)
        calls = {tid: perf_calls(branches, targets) for (tid, _), branches in perf.items()}
        return 1 if compare({t: c for t, c in calls.items() if c}, Rows(files[1]).threads(), same_call) else 0
    for (tid, _), branches in sorted(perf.items()):
        for b in branches:
            print(tid, b.kind, f"{b.source:x}", f"{b.target:x}", *b.source_name, *b.target_name)
    return 0


def main():
    global times_within
    arguments = sys.argv[1:]
    if arguments[:1] == ["--times-within"]:
        times_within = int(arguments[1])
        del arguments[:2]
    mode, *files = arguments or [""]
    if len(files) not in {"dump": (2, 3), "gaps": (2, 3), "cpus": (2, 3), "rows": (2, 3), "perf": (1,)}.get(mode, ()):
        sys.exit(__doc__)
    try:
        return run(mode, files)
    except (BadInput, OSError, sqlite3.Error) as error:
        print(f"normalize_calls.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
