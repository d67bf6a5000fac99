"""What an armed `sample` source costs a forwarder's throughput, beside `perf record`'s ways at the same frequency: sample_cost.py [PAIRS]

A forwarder under a load without limit, in a network namespace of its own; windows with a recorder alternate with windows without, and
each window is compared with the mean of its two neighbours. Prints a line a recorder: the median over the pairs, and how far apart the middle half of them lie, which tells how noisy the machine is; the
CPU time a byte is less so. Exit 1 where the armed recorder takes more than 2 % of the throughput. Needs root."""
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

STALLTRAP, BUILD = os.environ["STALLTRAP"], os.environ["BUILD"]
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 9
WINDOW = 1.0


def carried(pid):
    for line in open(f"/proc/{pid}/net/dev"):
        if line.strip().startswith("lo:"):
            return int(line.split()[1])
    raise SystemExit("no loopback device")


def cpu_time(pid):
    return int(open(f"/proc/{pid}/schedstat").read().split()[0])


def window(pid):
    """Bytes a second, and bytes a nanosecond of the forwarder's CPU time."""
    start, bytes_before, cpu_before = time.monotonic(), carried(pid), cpu_time(pid)
    time.sleep(WINDOW)
    moved = carried(pid) - bytes_before
    return moved / (time.monotonic() - start), moved / (cpu_time(pid) - cpu_before)


class Recorder:
    def __init__(self, command, armed):
        self.err = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.err)
        for _ in range(600):
            text = open(self.err.name).read()
            if armed is None or re.search(armed, text):
                break
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended: {text}")
            time.sleep(0.02)
        if armed is None:
            time.sleep(0.5)
        self.text = open(self.err.name).read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def spread(values):
    low, _, high = statistics.quantiles(values)
    return f"half of them within {low:.2f} to {high:.2f}"


def measure(name, pid, command, armed):
    rates, costs = [], []
    before = window(pid)
    for _ in range(PAIRS):
        recorder = Recorder(command, armed)
        during = window(pid)
        recorder.end()
        after = window(pid)
        rates.append(during[0] / ((before[0] + after[0]) / 2))
        costs.append(during[1] / ((before[1] + after[1]) / 2))
        before = after
    slower = [100 * (1 - r) for r in rates]
    dearer = [100 * (1 / c - 1) for c in costs]
    print(f"{name}_slowdown {statistics.median(slower):.2f} % vs not armed (throughput, median of {PAIRS}, {spread(slower)})")
    print(f"{name}_cpu_cost {statistics.median(dearer):.2f} % vs not armed (CPU time a byte, median of {PAIRS}, {spread(dearer)})", flush=True)
    return recorder, statistics.median(slower)


def main():
    if "--inside" not in sys.argv:
        sys.exit(subprocess.call(["unshare", "-n", sys.executable, sys.argv[0], str(PAIRS), "--inside"]))
    subprocess.check_call(["ip", "link", "set", "lo", "up"])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        forwarder = subprocess.Popen([f"{BUILD}/tests/workloads/forwarder", "--listen", "127.0.0.1:0", "--self-load", "--load-rate", "0",
                                      "--load-connections", "2", "--log", "log"], stderr=subprocess.DEVNULL)
        try:
            pid = forwarder.pid
            while carried(pid) < 1 << 20:
                time.sleep(0.05)
            arm = [STALLTRAP, "arm", "--source", "sample", "-p", str(pid), "-o", "x", "--no-decode"]
            ours, slower = measure("sample", pid, arm, "armed:")
            freq = re.search(r"(\d+) samples a second", ours.text).group(1)
            print(f"sample_frequency {freq} Hz")
            perf = ["perf", "record", "-F", freq, "-o", "perf.data", "-p", str(pid)]
            measure("perf_record_g", pid, perf + ["-g"], None)
            measure("perf_record_dwarf", pid, perf + ["--call-graph", "dwarf"], None)
        finally:
            forwarder.terminate()
            forwarder.wait()
    if slower > 2:
        sys.exit(f"sample_slowdown: {slower:.2f} % (goal: 2)")


if __name__ == "__main__":
    main()
