"""What `watch` on offcpu, runq, syscall and func at once leaves of a forwarder's throughput under iperf3: watch_cost.py [PAIRS]

iperf3 sends through the forwarder on eight connections, in a network namespace of their own, as fast as the machine can: all that
watching takes is missing. The forwarder has a CPU of its own, and iperf3 another: where the scheduler moves them about, the throughput is
now this and now that by itself. Windows with `watch` alternate with windows without, and each is compared with the mean of its two neighbours.
A second figure a line is bytes by processor time, of the forwarder and both iperf3 together: on a machine that others use too, it says more.

The function is log_line(), which the forwarder calls some twenty times a second (it stalls for 1 ms so often, and logs that): a uprobe
stops the thread at the entry and at the return, one to two microseconds in all, which is the kernel's part and the same for every tool.
So it is for functions that are called up to some thousand times a second; what it takes of one that is called at every turn of the
event loop is the figure watch_hot_function.
watch_floor is what no tool can do without that sees every system call: programs that only read the clock.

Exit 1 where less than 97 % of the throughput is left. Needs root and iperf3."""
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sample_cost import BUILD, PAIRS, STALLTRAP, Recorder, carried, spread  # noqa: E402

TRIGGERS = ("offcpu>20ms", "runq>2ms", "syscall>5ms")
FUNCTION = "func:log_line>5ms"
HOT_FUNCTION = "func:libc!epoll_wait>5ms"
LEAST = 0.97
ARMED = "(?m)^watching"


class Load:
    """The forwarder, and iperf3 on both sides of it."""

    def __init__(self):
        self.started = []
        self.start(0, "iperf3", "-s", "-B", "127.0.0.1", "-p", "5201")
        self.forwarder = self.start(os.cpu_count() - 1, f"{BUILD}/tests/workloads/forwarder", "--listen", "127.0.0.1:0",
                                    "--target", "127.0.0.1:5201", "--log", "log", "--stall", "busy:1:49").pid
        port = self.port()
        time.sleep(0.5)
        self.start(0, "iperf3", "-c", "127.0.0.1", "-p", port, "-P", "8", "-t", "1200")
        while carried(self.forwarder) < 1 << 30:
            time.sleep(0.05)

    def start(self, cpu, *command):
        command = ("taskset", "-c", str(cpu)) + command
        self.started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.started[-1]

    @staticmethod
    def port():
        while True:
            found = os.path.exists("log") and re.search(r"(?m)^.*listen=\S*:(\d+)", open("log").read())
            if found:
                return found.group(1)
            time.sleep(0.05)

    def cpu_ns(self):
        return sum(int(open(f).read().split()[0]) for p in self.started for f in glob.glob(f"/proc/{p.pid}/task/*/schedstat"))

    def window(self, seconds):
        """Bytes a second, and bytes a nanosecond of processor time."""
        start, bytes_before, cpu_before = time.monotonic(), carried(self.forwarder), self.cpu_ns()
        time.sleep(seconds)
        moved = carried(self.forwarder) - bytes_before
        return moved / (time.monotonic() - start), moved / (self.cpu_ns() - cpu_before)

    def end(self):
        for process in reversed(self.started):
            process.terminate()
            process.wait()


def measure(load, name, what, command, pairs, seconds, goal=""):
    """Prints what is left of the throughput while the command runs, and returns it."""
    rates, costs = [], []
    before = load.window(seconds)
    for _ in range(pairs):
        recorder = Recorder(command, ARMED)
        time.sleep(0.2)
        during = load.window(seconds)
        recorder.end()
        time.sleep(0.2)
        after = load.window(seconds)
        rates.append(during[0] / ((before[0] + after[0]) / 2))
        costs.append(during[1] / ((before[1] + after[1]) / 2))
        before = after
    left = statistics.median(rates)
    print(f"{name} {left:.3f} x vs not watched: throughput under iperf3 -P 8, {what}, median of {pairs} pairs, {spread(rates)}{goal}")
    print(f"{name}_cpu {statistics.median(costs):.3f} x vs not watched: bytes a processor second, {spread(costs)}", flush=True)
    return left


def watch(load, *triggers):
    return [STALLTRAP, "watch", "-p", str(load.forwarder)] + [word for t in triggers for word in ("--on", t)]


def main():
    if "--inside" not in sys.argv:
        sys.exit(subprocess.call(["unshare", "-n", sys.executable, sys.argv[0], str(PAIRS), "--inside"]))
    subprocess.check_call(["ip", "link", "set", "lo", "up"])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        load = Load()
        try:
            left = measure(load, "watch_throughput", ", ".join(TRIGGERS + (FUNCTION,)) + " at once", watch(load, *TRIGGERS, FUNCTION),
                           PAIRS, 8, f" (goal: {LEAST})")
            measure(load, "watch_floor", "two programs that read the clock at each system call", [f"{BUILD}/tests/bench/empty_hooks"], 4, 4)
            measure(load, "watch_hot_function", f"{HOT_FUNCTION} instead of {FUNCTION}", watch(load, *TRIGGERS, HOT_FUNCTION), 4, 4)
        finally:
            load.end()
    if left < LEAST:
        sys.exit(f"watch_throughput: {left:.3f} (goal: {LEAST})")


main()
