#!/usr/bin/env python3
"""The table of foreign programs that are made to stall: table.py --stalltrap PROGRAM --build FOLDER [--programs X,Y] [--causes Z] [--trials N].
For each program and kind of stall: how often `arm --source sample -p PID --on TRIGGER` with no other option fires on it, and what the report
says, beside the injector's or the program's own log. Results are kept in BUILD/field-table; --doc FILE writes the table of all that is there.
Ends with 1 if a goal was missed, with 77 if nothing can be measured here."""
import argparse
import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import table_doc
import table_judge as judge
import table_programs as programs
import table_stalls as stalls
import told
from table_observer import Observer, overlap, waited
from told import MS

SETTLE = 1.5  # seconds of normal load between armed and the stall
RUNNABLE = (0, 256)  # states of a thread that lost its CPU
MUCH_DELAY = 60 * MS  # without a CPU: more than the machine may take of a thread that is to compute
EARLY = 5 * MS  # a stall may begin that long before it was asked for: two clocks


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stalltrap", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--programs", default="", help="names, with commas between them; without: all")
    parser.add_argument("--causes", default="")
    parser.add_argument("--trials", type=int, default=int(os.environ.get("TRIALS", 10)))
    parser.add_argument("--quiet", type=int, default=20, help="seconds of normal load in which nothing is to fire")
    parser.add_argument("--second", action="store_true", help="with the second trigger that a user would try as well")
    parser.add_argument("--doc", help="writes the table of all results that there are")
    parser.add_argument("--only-doc", action="store_true", help="runs nothing")
    return parser.parse_args()


def before_others():
    """A session and a name space of mounts of our own: what is mounted is gone with us. And before other work on the machine."""
    if os.getsid(0) != os.getpid():
        os.execvp("setsid", ["setsid", "--wait", sys.executable, *sys.argv])
    for path, text in (("/proc/self/autogroup", "-15"), ("/proc/self/oom_score_adj", "0")):
        try:
            open(path, "w").write(text)
        except OSError:
            pass
    os.setpriority(os.PRIO_PROCESS, 0, -15)
    libc = ctypes.CDLL(None)
    if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x4000 | 0x40000, None):
        skip("no name space of mounts")
    if not os.path.exists("/sys/kernel/tracing/events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=False)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Arm:
    """One run of arm with the default options."""

    def __init__(self, options, folder, pids, triggers, extra=()):
        self.folder, self.stalltrap = folder, options.stalltrap
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        ready, write = os.pipe()
        command = [options.stalltrap, "arm", "--source", "sample", "-p", ",".join(map(str, pids)), "-o", f"{folder}/t", "--ready-fd", str(write)]
        for trigger in triggers:
            command += ["--on", trigger]
        self.process = subprocess.Popen(command + list(extra), pass_fds=[write], stdout=open(f"{folder}/arm.out", "w"), stderr=open(f"{folder}/arm.err", "w"))
        os.close(write)
        self.armed = os.read(ready, 16) == b"armed\n"
        os.close(ready)

    def end(self):
        return self.process.wait(60)

    def report(self, number=1):
        out = subprocess.run([self.stalltrap, "report", f"{self.folder}/t.{number}.db"], capture_output=True, text=True, check=True).stdout
        with open(f"{self.folder}/report.{number}", "w") as file:
            file.write(out)
        return out


def by_observer(truth, stall, observer):
    """How long the stall was, by the observer: the thread's wait that the told one overlaps most."""
    begin = int(stall["start"])
    told_span = (begin, begin + int(stall["duration"]))

    def found():
        spans = [waited(span, stall["kind"]) for span in observer.spans() if span[0] == int(stall["tid"])]
        return max((span for span in spans if overlap(span, told_span) > 0), key=lambda span: overlap(span, told_span), default=None)
    try:
        best = stalls.until(found, 2, "the observer")
    except TimeoutError:
        return None
    length = best[1] - best[0]
    return truth._replace(least=length, most=length)


def real(stall, observer, program):
    """Whether what fired was there, by the observer or by who waited for an answer. That a thread waited does not say that its loop was away."""
    begin = int(stall["start"])
    told_span = (begin, begin + int(stall["duration"]))
    spans = [span for span in observer.spans() if span[0] == int(stall["tid"])]
    spans = [(span[1], span[3]) for span in spans if stall["kind"] != "busy" or span[4] in RUNNABLE]
    spans += [tuple(map(int, line.split())) for line in stalls.lines_of(program.late)]
    worked = sum(max(0, overlap(span, told_span)) for span in observer.ran(int(stall["tid"]))) if stall["kind"] == "busy" else 0
    return max([worked] + [overlap(span, told_span) for span in spans]) * 2 > told_span[1] - told_span[0]


def judged(arm, program, cause, truth, observer):
    """One trial: what is wrong with what is told of it."""
    rule = judge.rule_of(program.name, cause)
    stall = told.fired(arm.stalltrap, f"{arm.folder}/t.1.db")
    wrong = told.bounds((truth.start, truth.end, truth.least, truth.tid), stall, EARLY, True) if not truth.observed else None
    if int(stall["start"]) + int(stall["duration"]) < truth.start or int(stall["start"]) > truth.end:
        return {"fired": False, "elsewhere": True, "real": real(stall, observer, program), "why": ["fired on another stall"]}
    if truth.tid and int(stall["tid"]) != truth.tid:
        return {"fired": False, "why": [f"thread {stall['tid']}, and it was {truth.tid}"]}
    if truth.observed:
        seen = by_observer(truth, stall, observer)
        if not seen:
            return {"fired": False, "elsewhere": True, "real": True, "why": ["the observer saw no such wait"]}
        truth = seen
    report = arm.report()
    found = {"fired": True, "cause": judge.cause_of(report, rule), "named": judge.named(report, rule, program.peer),
             "length": judge.right_length(stall, truth), "false": list(judge.false_statements(report, rule, stall, truth.most))}
    why = [f"length {int(stall['duration']) / MS:.1f} ms, and it was {truth.least / MS:.1f} ms"
           + (" (still going on)" if stall["goes_on"] != "0" else "")] if not found["length"] else []
    why += [wrong] if wrong else []
    why += [f"cause: {judge.field(report, 'cause')}"] if found["cause"] != "right" or not found["named"] else []
    return {**found, "why": why + [f"false: {what}" for what in found["false"]]}


def run_delays(program):
    """How long each of its threads was ready without a CPU, as the kernel counts it."""
    delays = {}
    for pid in program.pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            delays[int(task)] = sum(int(line.split()[1]) for line in stalls.lines_of(f"/proc/{pid}/task/{task}/schedstat"))
    return delays


def delayed(program, before, tid):
    """Whether other programs had the CPU instead of the thread that was to compute (0: of any)."""
    return any(delay - before.get(task, 0) > MUCH_DELAY for task, delay in run_delays(program).items() if task == tid or not tid)


def trial(options, program, cause, trigger, observer, folder):
    arm = Arm(options, folder, program.pids, [trigger], ["--timeout", "8s"])
    if not arm.armed:
        arm.end()
        return {"fired": False, "why": ["arm: " + (stalls.lines_of(f"{folder}/arm.err") or ["?"])[-1]]}
    time.sleep(SETTLE)
    before = run_delays(program)
    early = arm.process.poll() is not None or os.path.getsize(f"{folder}/arm.out") > 0
    truth = program.causes()[cause].make(program)
    with open(f"{folder}/truth", "w") as file:
        print(*truth, file=file)
    try:
        arm.process.wait(2.5 if not early else 30)
    except subprocess.TimeoutExpired:
        if os.path.getsize(f"{folder}/arm.out") == 0:
            arm.process.send_signal(signal.SIGTERM)
    arm.end()
    if not os.path.exists(f"{folder}/t.1.db"):
        below = [line for line in stalls.lines_of(f"{folder}/arm.err") if "did not fire" in line or "idle:" in line or "not called" in line]
        return {"fired": False, "why": ["did not fire"] + below}
    if cause == "compute" and delayed(program, before, truth.tid):
        return {"fired": False, "elsewhere": True, "real": True, "why": ["other programs had the CPU"]}
    return judged(arm, program, cause, truth, observer)


def trials(options, program, cause, trigger, observer):
    """As many as asked for. What fired on a stall of the machine's own, which the observer saw too, is tried again."""
    results = []
    for number in range(options.trials):
        folder = f"{options.results}/{program.name}/{cause}/{trigger.replace(':', '.').replace('>', '.')}/{number + 1}".replace(" ", "-")
        for again in range(3):
            result = trial(options, program, cause, trigger, observer, folder)
            if not result.get("elsewhere") or not result.get("real"):
                break
        result["again"] = again
        result["folder"] = os.path.relpath(folder, options.results)
        if not result["why"]:
            shutil.rmtree(folder)
        results.append(result)
        print(f"{program.name:10} {cause:10} {trigger:24} {number + 1:3}  " + ("; ".join(result["why"]) or "true"), flush=True)
    return {"trigger": trigger, "trials": results}


def false_alarms(options, program, observer):
    """What fires on its own beside a normal load, each trigger in turn; and how many of that the observer did not see."""
    folder = f"{options.results}/{program.name}/quiet"
    triggers = sorted({cause.triggers[0] for cause in program.causes().values()})
    arm = Arm(options, folder, program.pids, triggers, ["--snapshots", "0", "--timeout", f"{options.quiet}s"])
    arm.end()
    time.sleep(1)
    alarms, number = [], 0
    while os.path.exists(f"{folder}/t.{number + 1}.db"):
        number += 1
        stall = told.fired(options.stalltrap, f"{folder}/t.{number}.db")
        alarms.append({"kind": stall["kind"], "ms": int(stall["duration"]) / MS, "real": real(stall, observer, program)})
    false = sum(not alarm["real"] for alarm in alarms)
    print(f"{program.name:10} {'(none)':10} {options.quiet} s: {len(alarms)} fired, {false} of them on nothing that was observed", flush=True)
    return {"seconds": options.quiet, "triggers": triggers, "alarms": alarms}


def broken(row, work):
    """The harness's fault, not the product's."""
    traceback.print_exc()
    for path in os.listdir(work):
        if path.endswith(".out"):
            print(f"--- {path}", *stalls.lines_of(f"{work}/{path}")[-5:], sep="\n", flush=True)
    row["broken"] = traceback.format_exc().strip().split("\n")[-1]


def cause_of(options, program, name, observer, row):
    triggers = program.causes()[name].triggers
    try:
        for place, trigger in enumerate(triggers[:2 if options.second else 1]):
            row["causes"].setdefault(name, {})[("first", "second")[place]] = trials(options, program, name, trigger, observer)
    except Exception:
        broken(row, program.work)
    shutil.copy(observer.path, f"{options.results}/{program.name}/spans")


def measure(options, kind, store):
    if programs.missing(kind):
        print(f"{kind.name}: {kind.needs} is not installed")
        return
    work = tempfile.mkdtemp(prefix="stalltrap-field-")
    os.chmod(work, 0o755)
    program = kind(work)
    observer = None
    row = store["programs"].setdefault(kind.name, {"causes": {}})
    row.pop("broken", None)
    row["version"] = programs.version_of(kind)
    try:
        program.start()
        observer = Observer(program.pids, f"{work}/spans")
        if options.quiet:
            row["quiet"] = false_alarms(options, program, observer)
        for name in program.causes():
            if not options.causes or name in options.causes:
                cause_of(options, program, name, observer, row)
                save(options, store)
    except Exception:
        broken(row, work)
    finally:
        if observer:
            observer.end()
        program.end()
        shutil.rmtree(work, ignore_errors=True)
        save(options, store)


def save(options, store):
    with open(f"{options.results}/results.json", "w") as file:
        json.dump(store, file, indent=1)


def load(options):
    path = f"{options.results}/results.json"
    return json.load(open(path)) if os.path.exists(path) else {"programs": {}}


def main():
    options = arguments()
    options.results = os.path.join(options.build, "field-table")
    options.stalltrap = os.path.abspath(options.stalltrap)
    os.makedirs(options.results, exist_ok=True)
    options.causes = [name for name in options.causes.split(",") if name]
    store = load(options)
    if not options.only_doc:
        if os.getuid() or not os.path.exists("/sys/kernel/btf/vmlinux") or not shutil.which("bpftrace"):
            skip("triggers need root and the kernel's BTF, and the observer needs bpftrace")
        before_others()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        stalls.old_groups()
        store["kernel"] = platform.release()
        for kind in programs.PROGRAMS:
            if not options.programs or kind.name in options.programs.split(","):
                measure(options, kind, store)
    if options.doc:
        with open(options.doc, "w") as file:
            file.write(table_doc.page(store))
    print(table_doc.summary(store))
    sys.exit(1 if table_doc.missed(store) else 0)


main()
