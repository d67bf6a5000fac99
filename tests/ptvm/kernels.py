"""The table of docs/kernels.md: what guest_kinds.sh found on each kernel.

kernels.py check TABLE SUITE RESULTS   fails where a cell of TABLE that worked does not, or one that was refused is refused in other words
kernels.py take TABLE SUITE RESULTS    puts the results of a run into TABLE
kernels.py doc TABLE                   prints the document

RESULTS is the folder of a run (`kernel`, `cells`). TABLE has lines, with tabs: SUITE, RELEASE, CELL, "works" or "refused", HOW."""
import os
import re
import sys

# CELL: what stands in the document for it.
ROWS = {
    "sample": "source `sample`",
    "sample.threads": "`sample` with `--rings thread`",
    "intel-pt": "source `intel-pt`",
    "step": "source `step`",
    "offcpu": "`offcpu`",
    "busy": "`busy`",
    "runq": "`runq`",
    "syscall": "`syscall`",
    "func": "`func:` of user code",
    "func.kernel": "`func:kernel!NAME`",
    "call": "`call:` of user code",
    "call.kernel": "`call:kernel!NAME`",
    "quiet": "`quiet:` of user code",
    "socket": "`socket`, unread",
    "socket.queue": "`socket`, all sides: not accepted",
    "irq": "`irq`",
    "softirq": "`softirq`",
    "tracepoint": "`tracepoint:`",
    "usdt": "`usdt:`",
    "bpf": "`bpf:FILE.o`",
    "bpftrace": "`bpftrace:`",
}


def read_table(path):
    with open(path, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file]


def read_results(suite, folder):
    with open(os.path.join(folder, "kernel"), encoding="utf-8") as file:
        release = file.read().strip()
    with open(os.path.join(folder, "cells"), encoding="utf-8") as file:
        return [(suite, release, *line.rstrip("\n").split("\t")) for line in file]


def without_release(text):
    """A refusal names the running kernel, which Debian updates."""
    return re.sub(r"this kernel \([^)]*\)", "this kernel", text)


def check(table, results, suite):
    now = {cell: (result, how) for _, _, cell, result, how in results}
    bad = [f"{cell}: {now[cell][1]}" for cell in now if now[cell][0] == "failed"]
    for there, _, cell, result, how in table:
        if there != suite:
            continue
        if cell not in now:
            bad.append(f"{cell}: was not tried")
        elif result == "works" and now[cell][0] != "works":
            bad.append(f"{cell}: worked, and now: {now[cell][0]}, {now[cell][1]}")
        elif result == "works" and how != now[cell][1]:
            bad.append(f"{cell}: worked by '{how}', and now by '{now[cell][1]}'")
        elif result == "refused" and now[cell][0] == "refused" and without_release(how) != without_release(now[cell][1]):
            bad.append(f"{cell}: was refused with '{how}', and now with '{now[cell][1]}'")
        elif result == "refused" and now[cell][0] == "works":
            print(f"{cell}: was refused, and works now: `make kernels-table`")
    missing = set(ROWS) - set(now)
    bad += [f"{cell}: was not tried" for cell in missing if not any(cell in line for line in bad)]
    for line in bad:
        print(f"FAILED: {line}")
    return not bad


def take(path, results, suite):
    rows = [row for row in (read_table(path) if os.path.exists(path) else []) if row[0] != suite]
    if any(row[3] == "failed" for row in results):
        sys.exit("a cell failed: the table is left as it was")
    rows += results
    rows.sort(key=lambda row: ([int(n) for n in re.findall(r"\d+", row[1])[:3]], list(ROWS).index(row[2])))
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


HEAD = """# Kernels

Which kind of trigger, and which source, works on which kernel. Debian's stock kernels boot in an emulated computer with Intel PT
([tests/ptvm](../tests/ptvm/README.md)); on each of them, every kind is armed and the workload stalls in that way, and what is told has to be what the
workload itself noted. `make kernels-table` makes this page of what it finds; the tests `ptvm_kernels_*` fail where something that worked does not.

"yes" is: it fired and its record was right. Behind it stands by which hook, where there are several, or, of a source, what is recorded and in which rings.
"""

TAIL = """
## What a kernel needs

The programs of the kinds need BPF with BTF, with per-CPU variables in it, and these, of which each is tried and not concluded from the version, because
distributions take them into older kernels:

| | came with |
|---|---|
| reads of kernel memory (`bpf_probe_read_kernel`) | Linux 5.5 |
| the current task in BPF (`bpf_get_current_task_btf`) | Linux 5.11 |
| atomic operations that return a value; task storage for programs on tracepoints | Linux 5.12 |
| walks over maps (`bpf_for_each_map_elem`), formatted text (`bpf_snprintf`) | Linux 5.13 |
| timers (`bpf_timer_init`), user registers of a task (`bpf_task_pt_regs`) | Linux 5.15 |

`stalltrap doctor` has a line for each, and says under `triggers` in one sentence what lacks. `arm --on` refuses with the same sentence, and exit 3. The kinds
`bpf:FILE.o` and `bpftrace:FILE` run programs of the user's own and need none of it, nor does recording without `--on`.

What came later is used where it is there and done in another way where it is not: the fourth argument of `sched_switch` (5.18), arguments of functions by fentry
(`bpf_get_func_arg`, 5.17: kprobes before), iterators over one thread (6.1), `sock:sock_send_length` and `sock:sk_data_ready` (6.3), `aux_pause` (6.13).

Linux 5.15 to 6.0 brought all that is needed, and were not tried, nor were the other ways that they need: Debian's mirror has no kernel of these versions any more.

Kernel lockdown (tried on 6.1, `ptvm_lockdown_*`): at `integrity` triggers work; at `confidentiality` no BPF program may read the kernel's memory, and triggers are
refused with that reason, while `sample` records. Unsent data as trigger: `ptvm_triggers`, on 6.1.
"""


def version_of(release):
    return re.match(r"\d+\.\d+", release).group()


def document(table):
    suites = {}
    for suite, release, cell, result, how in table:
        suites.setdefault((suite, release), {})[cell] = (result, how)
    reasons = []
    lines = [HEAD, "| | " + " | ".join(f"{version_of(release)}" for _, release in suites) + " |", "|---" * (len(suites) + 1) + "|"]
    lines.append("| Debian | " + " | ".join(suite for suite, _ in suites) + " |")
    lines.append("| release | " + " | ".join(f"`{release}`" for _, release in suites) + " |")
    for cell, label in ROWS.items():
        row = []
        for found in suites.values():
            result, how = found.get(cell, ("not tried", ""))
            if result == "refused":
                if how not in reasons:
                    reasons.append(how)
                row.append(f"no ({reasons.index(how) + 1})")
            else:
                row.append(result.replace("works", "yes") + (f", {how}" if how else ""))
        lines.append(f"| {label} | " + " | ".join(row) + " |")
    for i, reason in enumerate(reasons, 1):
        lines += ["", f"({i}) exit 3: `{reason.replace('`', '')}`"]
    return "\n".join(lines) + "\n" + TAIL


def main():
    what, path = sys.argv[1:3]
    if what == "doc":
        print(document(read_table(path)), end="")
        return
    suite, folder = sys.argv[3:]
    results = read_results(suite, folder)
    if what == "take":
        take(path, results, suite)
    elif not check(read_table(path), results, suite):
        sys.exit(1)


main()
