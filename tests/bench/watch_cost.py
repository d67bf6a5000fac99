"""What `watch` on offcpu, runq, syscall and func at once leaves of a forwarder's throughput under iperf3: watch_cost.py [PAIRS]

iperf3 sends through the forwarder on eight connections, in a network namespace of their own. Windows with `watch` alternate with windows
without, and each is compared with the mean of its two neighbours. Exit 1 where less than 97 % is left. Needs root and iperf3."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sample_cost import BUILD, PAIRS, STALLTRAP, Recorder, carried, spread, window  # noqa: E402

TRIGGERS = ("offcpu>20ms", "runq>2ms", "syscall>5ms", "func:libc!epoll_wait>5ms")
LEAST = 0.97


def start(*command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def forwarder_port():
    while True:
        for line in open("log") if os.path.exists("log") else ():
            if line.startswith("listen="):
                return line.split()[0].rsplit(":", 1)[1]
        time.sleep(0.05)


def measure(pid):
    watch = [STALLTRAP, "watch", "-p", str(pid)] + [word for t in TRIGGERS for word in ("--on", t)]
    rates, costs = [], []
    before = window(pid)
    for _ in range(PAIRS):
        recorder = Recorder(watch, "^watching|\nwatching")
        during = window(pid)
        recorder.end()
        after = window(pid)
        rates.append(during[0] / ((before[0] + after[0]) / 2))
        costs.append(during[1] / ((before[1] + after[1]) / 2))
        before = after
    left = statistics.median(rates)
    print(f"watch_throughput {left:.3f} x vs not watched: {', '.join(TRIGGERS)} at once under iperf3 -P 8, median of {PAIRS} pairs, "
          f"{spread(rates)} (goal: {LEAST})")
    print(f"watch_bytes_a_cpu_second {statistics.median(costs):.3f} x vs not watched, {spread(costs)}", flush=True)
    return left


def main():
    if "--inside" not in sys.argv:
        sys.exit(subprocess.call(["unshare", "-n", sys.executable, sys.argv[0], str(PAIRS), "--inside"]))
    subprocess.check_call(["ip", "link", "set", "lo", "up"])
    started = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            started.append(start("iperf3", "-s", "-B", "127.0.0.1", "-p", "5201"))
            forwarder = start(f"{BUILD}/tests/workloads/forwarder", "--listen", "127.0.0.1:0", "--target", "127.0.0.1:5201", "--log", "log")
            started.append(forwarder)
            port = forwarder_port()
            time.sleep(0.5)
            started.append(start("iperf3", "-c", "127.0.0.1", "-p", port, "-P", "8", "-t", "600"))
            while carried(forwarder.pid) < 1 << 28:
                time.sleep(0.05)
            left = measure(forwarder.pid)
        finally:
            for process in started:
                process.terminate()
                process.wait()
    if left < LEAST:
        sys.exit(f"watch_throughput: {left:.3f} (goal: {LEAST})")


main()
