"""How soon the ring of a thread that stalled stops, and how many of its stalls make a snapshot: catch.py [TRAPS]

A program computes for 20 ms and sleeps for 30 ms, again and again; each sleep is a stall that is told when it ends. What is measured is
the time from its end, when the trigger decides, to the moment at which the thread's ring had stopped (meta.ring_stops of the traces), and the
share of the sleeps that made a snapshot.

alone     two traps a second, and nothing else to do
busy      a trap at each sleep, as many as the recorder can take: snapshots of 64 MiB are written one after the other, and an action of 0.2 s runs
          behind each of them
threads   as alone, with a thousand threads more in the program, that sleep
hogs      as alone, with two busy loops on each CPU

A thread of SCHED_FIFO a CPU (tests/control), which sleeps for 1 ms again and again, tells how late the machine itself was meanwhile: what a hypervisor
takes is no fault of the recorder.

Exit 1 where the 99th of a hundred is above 2 ms (alone, busy, threads), or that of busy above 1.2 times that of alone; 77 where one of them is
no more above its goal than the machine itself was late. Needs root."""
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

STALLTRAP = os.path.abspath(os.environ["STALLTRAP"])
CONTROL = os.path.abspath(os.environ["BUILD"] + "/tests/control")
TRAPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200

TARGET = """
import sys, threading, time
for _ in range(int(sys.argv[1])):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
while True:
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    time.sleep(0.03)
"""
SLOW = ("--freq", "5000", "--callgraph", "dwarf", "--then", "sleep 0.2")
#         traps, threads, busy loops a CPU, ring, cooldown, options
SCENES = {"alone": (TRAPS, 0, 0, "1M", "500ms", ()),
          "busy": (TRAPS, 0, 0, "64M", "1ns", SLOW),
          "threads": (TRAPS // 4, 1000, 0, "1M", "500ms", ()),
          "hogs": (TRAPS // 4, 0, 2, "1M", "500ms", ())}


def arm(prefix, traps, threads, ring, cooldown, options):
    """Runs one recording to its end. The thread that stalls, and how many of its stalls made no snapshot."""
    target = subprocess.Popen([sys.executable, "-c", TARGET, str(threads)])
    try:
        run = subprocess.run([STALLTRAP, "arm", "--source", "sample", "-p", str(target.pid), "--on", "syscall:clock_nanosleep>25ms",
                              "--cooldown", cooldown, "--snapshots", str(traps), "--ring", ring, "--no-decode", "-o", prefix, *options],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    finally:
        target.kill()
        target.wait()
    if run.returncode:
        sys.exit(f"{prefix}: arm ends with {run.returncode}:\n{run.stderr}")
    without = re.search(r"(?m)^(\d+) stalls? reached", run.stderr)
    return target.pid, int(without.group(1)) if without else 0


def lateness(data, tid):
    """us from the end of the stall to the stop of the ring that its thread was recorded in: its own, or that of the CPU it was on."""
    trace = data[:-4] + "db"
    subprocess.run([STALLTRAP, "decode", "--force", data, "-o", trace], stdout=subprocess.DEVNULL, check=True)
    with sqlite3.connect(trace) as db:
        stops = json.loads(db.execute("SELECT value FROM meta WHERE key = 'ring_stops'").fetchone()[0])
        cpu = db.execute("SELECT value FROM stall_attr WHERE key = 'cpu' AND stall_id = "
                         "(SELECT value FROM meta WHERE key = 'trigger_stall_id')").fetchone()
    os.remove(trace)
    own = [s["after_ns"] for s in stops if s["tid"] == tid]
    if not own and cpu:
        own = [s["after_ns"] for s in stops if s["cpu"] == int(cpu[0])]
    # Of rings of CPUs the one that was stopped first is the one of the thread.
    own = own or [min(s["after_ns"] for s in stops if s["after_ns"] is not None)]
    return own[0] / 1000


class Control:
    def __init__(self):
        self.run = subprocess.Popen([CONTROL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run.stdout.readline()

    def late(self):
        """us, at the worst, since it was asked last."""
        self.run.stdin.write("\n")
        self.run.stdin.flush()
        return int(self.run.stdout.readline()) / 1000

    def end(self):
        self.run.stdin.close()
        self.run.wait()


def measure(name, traps, threads, loops, ring, cooldown, options):
    hogs = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
            for cpu in sorted(os.sched_getaffinity(0)) for _ in range(loops)]
    control = Control()
    try:
        tid, without = arm(name, traps, threads, ring, cooldown, options)
        itself = control.late()
    finally:
        control.end()
        for hog in hogs:
            hog.kill()
            hog.wait()
    files = glob.glob(f"{name}.*.data")
    size = max(os.path.getsize(f) for f in files)
    late = sorted(lateness(f, tid) for f in files)
    for f in files:
        os.remove(f)
    p99 = late[min(len(late) - 1, len(late) * 99 // 100)]
    print(f"catch_{name}_p99 {p99:.0f} us vs the others: from a stall's end to the stop of its ring, of {len(late)} traps; median "
          f"{late[len(late) // 2]:.0f}, most {late[-1]:.0f}; {size / (1 << 20):.1f} MiB a snapshot; the machine itself was late by {itself:.0f} at the worst", flush=True)
    print(f"catch_{name}_share {traps / (traps + without):.2f} of 1 vs the others: of {traps + without} stalls", flush=True)
    return p99, itself


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        of = {name: measure(name, *scene) for name, scene in SCENES.items()}
        os.chdir("/")
    print(f"catch_busy_ratio {of['busy'][0] / of['alone'][0]:.2f} x vs alone (goal: at most 1.2)")
    goals = {"alone": 2000, "threads": 2000, "busy": min(2000, 1.2 * of["alone"][0])}
    missed = {name for name, goal in goals.items() if of[name][0] > goal}
    excused = {name for name in missed if of[name][0] - of[name][1] <= goals[name]}
    if excused:
        print("# inconclusive, as the machine itself was late:", *sorted(excused))
    sys.exit(1 if missed - excused else 77 if excused else 0)


main()
