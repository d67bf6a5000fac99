"""How soon the ring of a thread that stalled stops, and whether the stall is caught, (a) alone and (b) while the snapshot before is being
written, decoded, and its slow action runs: catch.py [TRAPS]

A program computes for 20 ms and sleeps for 30 ms, again and again; each sleep is a stall that ends before it is told. What is measured
is the time from its end, when the trigger has decided, to the moment at which the thread's ring had stopped (meta.ring_stops of the
traces), and how many of the sleeps made a snapshot. Alone: a trap a second, nothing is decoded meanwhile. Busy: a trap at each sleep, as many
as the recorder can take; the rings hold 64 MiB.

A figure is the median of the traps, and the 99th part of a hundred. Needs root."""
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
STALLTRAP = os.environ.get("STALLTRAP", os.path.join(BUILD, "stalltrap"))
TRAPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200

TARGET = """
import time
while True:
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    time.sleep(0.03)
"""


def arm(prefix, traps, ring, cooldown, *more):
    """Runs one recording to its end. Returns how many stalls there were beside those that made a snapshot."""
    target = subprocess.Popen([sys.executable, "-c", TARGET])
    try:
        run = subprocess.run([STALLTRAP, "arm", "--source", "sample", "-p", str(target.pid), "--on", "offcpu>25ms,idle=none",
                              "--until-end", "0", "--cooldown", cooldown, "--snapshots", str(traps), "--ring", ring, "-o", prefix, *more],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    finally:
        target.kill()
        target.wait()
    without = re.search(r"(?m)^(\d+) stalls? reached", run.stderr)
    return target.pid, int(without.group(1)) if without else 0


def lateness(prefix, tid):
    """ns from the end of the stall to the stop of its thread's ring, of each snapshot."""
    late = []
    for data in glob.glob(glob.escape(prefix) + ".*.data"):
        trace = data[:-4] + "db"
        if not os.path.exists(trace):
            subprocess.run([STALLTRAP, "decode", data, "-o", trace], stdout=subprocess.DEVNULL, check=True)
        with sqlite3.connect(trace) as db:
            text = db.execute("SELECT value FROM meta WHERE key = 'ring_stops'").fetchone()
        late += [r["after_ns"] for r in json.loads(text[0]) if r.get("tid") == tid and r["after_ns"] is not None]
    return sorted(late)


def told(name, late, traps, without, size):
    if not late:
        sys.exit(f"{name}: no snapshot tells when the ring stopped")
    print(f"catch_{name}_us {late[len(late) // 2] / 1000:.0f} us vs the other: from the end of the stall to the stop of its ring, median "
          f"of {len(late)}; p99 {late[min(len(late) - 1, len(late) * 99 // 100)] / 1000:.0f}, most {late[-1] / 1000:.0f}; "
          f"{size >> 20} MiB a snapshot")
    print(f"catch_{name}_share {traps / (traps + without):.2f} of 1 vs the other: stalls that made a snapshot, of {traps + without}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, ring, cooldown, traps, more in (
                ("alone", "1M", "500ms", TRAPS // 4, ("--no-decode",)),
                ("busy", "64M", "1ns", TRAPS, ("--freq", "5000", "--callgraph", "dwarf", "--no-decode", "--then", "sleep 0.2"))):
            tid, without = arm(name, traps, ring, cooldown, *more)
            size = max(os.path.getsize(f) for f in glob.glob(f"{name}.*.data"))
            told(name, lateness(name, tid), traps, without, size)


main()
