"""What recording costs servers under a load without limit: server_cost.py [PAIRS [SERVER...]]

redis, memcached, nginx, PostgreSQL, and a server of Go's and of Java's standard library, each loaded by a client of its own; windows with a recorder
alternate with windows without. A line a server and recorder: throughput and 99th percentile of the answers' times beside those of the
windows before and behind, and the server's CPU time a request (medians of the pairs). Beside `arm --source sample` and `watch` as they are by default: `perf
record -g` at the frequency that arm chose, and bpftrace with a histogram of the times off the CPU. With HOG=1 in the environment there is a busy loop on each
CPU all the while. Exit 1 where arm leaves less than 0.97 of the throughput, or watch less than 0.98. Needs root, and the packages of `make more-deps`."""
import glob
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

STALLTRAP, SOURCE = os.environ["STALLTRAP"], os.environ["SOURCE"]
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 9
SECONDS = 2
CLIENTS = 16
GOALS = {"arm": 0.97, "watch": 0.98}
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port):
    for _ in range(600):
        with socket.socket() as s:
            if not s.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    raise SystemExit(f"nobody listens on port {port}")


def output(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


class Redis:
    def __init__(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", folder], **QUIET)
        self.n = 20000

    def load(self):
        """Requests a second, and the 99th percentile of their times in ms."""
        begun = time.monotonic()
        text = output("redis-benchmark", "-p", str(self.port), "-c", str(CLIENTS), "-n", str(self.n), "-t", "get", "--csv")
        took = time.monotonic() - begun
        done, self.n = self.n, max(1000, int(self.n * SECONDS / took))
        fields = text.strip().splitlines()[-1].replace('"', "").split(",")
        return done, float(fields[1]), float(fields[6])


class Memcached:
    def __init__(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(self.port), "-t", "2"], **QUIET)

    def load(self):
        text = output("python3", os.path.join(SOURCE, "tests/bench/memcached_load.py"), str(self.port), str(CLIENTS), str(SECONDS))
        done, rate, p99 = text.split()
        return int(done), float(rate), float(p99)


class Http:
    def load(self):
        text = output("ab", "-k", "-q", "-t", str(SECONDS), "-n", "10000000", "-c", str(CLIENTS), f"http://127.0.0.1:{self.port}/")
        return (int(re.search(r"Complete requests: +(\d+)", text)[1]), float(re.search(r"Requests per second: +([\d.]+)", text)[1]),
                float(re.search(r"99% +(\d+)", text)[1]))


class Nginx(Http):
    def __init__(self, folder):
        self.port = free_port()
        with open(f"{folder}/nginx.conf", "w") as f:
            f.write(f"daemon off; pid {folder}/pid; error_log /dev/null; worker_processes 2; events {{}} http {{ access_log off; "
                    f"keepalive_requests 1000000000; server {{ listen 127.0.0.1:{self.port}; location / {{ return 200 'well\\n'; }} }} }}")
        self.process = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"], **QUIET)


class Go(Http):
    def __init__(self, folder):
        self.port = free_port()
        shutil.copy(os.path.join(SOURCE, "tests/field/servers/server.go"), folder)
        subprocess.run(["go", "build", "-o", "server", "server.go"], cwd=folder, check=True, env=os.environ | {"GOCACHE": f"{folder}/cache", "GO111MODULE": "off"})
        self.process = subprocess.Popen([f"{folder}/server", str(self.port), f"{folder}/log"], **QUIET)


class Java(Http):
    def __init__(self, folder):
        self.port = free_port()
        subprocess.run(["javac", "-d", folder, os.path.join(SOURCE, "tests/field/servers/Server.java")], check=True, **QUIET)
        self.process = subprocess.Popen(["java", "-cp", folder, "Server", str(self.port), f"{folder}/log"], **QUIET)


class Postgres:
    def __init__(self, folder):
        self.port = free_port()
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.user = {"user": "postgres", "cwd": folder}
        shutil.chown(folder, "postgres")
        self.folder = folder
        subprocess.run([f"{self.bin}/initdb", "-D", f"{folder}/db"], check=True, **QUIET, **self.user)
        self.process = subprocess.Popen([f"{self.bin}/postgres", "-D", f"{folder}/db", "-p", str(self.port), "-k", folder, "-c", "fsync=off"], **QUIET, **self.user)
        wait_for_port(self.port)
        time.sleep(1)
        self.bench("-i", "-s", "2")

    def bench(self, *options):
        return output("pgbench", "-h", self.folder, "-p", str(self.port), *options, "postgres", **self.user)

    def load(self):
        for old in glob.glob(f"{self.folder}/pgbench_log.*"):
            os.unlink(old)
        text = self.bench("-S", "-c", str(CLIENTS), "-T", str(SECONDS), "-l")
        times = sorted(int(line.split()[2]) for path in glob.glob(f"{self.folder}/pgbench_log.*") for line in open(path))
        return len(times), float(re.search(r"tps = ([\d.]+)", text)[1]), times[len(times) * 99 // 100] / 1000


SERVERS = {"redis": Redis, "memcached": Memcached, "nginx": Nginx, "postgres": Postgres, "go": Go, "java": Java}


def processes(pid):
    found = [pid]
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        for child in open(task).read().split():
            found += processes(int(child))
    return found


def cpu_time(pid):
    """Of all its threads, ns."""
    total = 0
    for one in processes(pid):
        for path in glob.glob(f"/proc/{one}/task/*/schedstat"):
            try:
                total += int(open(path).read().split()[0])
            except (OSError, IndexError):
                pass
    return total


class Window:
    def __init__(self, server):
        before = cpu_time(server.process.pid)
        done, self.rate, self.p99 = server.load()
        self.cpu = (cpu_time(server.process.pid) - before) / done


class Recorder:
    """Armed when it is made: a pattern of what it says, or that it has been there for a second."""

    def __init__(self, name, server, folder, frequency):
        pids = ",".join(map(str, processes(server.process.pid)))
        command, armed = {
            "arm": ([STALLTRAP, "arm", "--source", "sample", "-p", pids, "--on", "offcpu>500ms", "--no-decode", "--snapshots", "0", "-o", f"{folder}/x"], "armed:"),
            "watch": ([STALLTRAP, "watch", "-p", pids, "--on", "offcpu>500ms"], None),
            "perf": (["perf", "record", "-q", "-g", "-F", str(frequency), "-p", pids, "-o", f"{folder}/perf.data"], None),
            "bpftrace": (["bpftrace", os.path.join(SOURCE, "tests/bench/offcpu.bt")], None),
        }[name]
        self.text = ""
        with open(f"{folder}/said", "w") as said:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        for _ in range(400):
            self.text = open(f"{folder}/said").read()
            if armed and armed in self.text:
                break
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended: {self.text}")
            time.sleep(0.05)
            if not armed and _ > 40:
                break
        time.sleep(1.2)  # it looks once a second how dear it is

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measure(name, server, folder, frequency):
    rates, cpus, tails = [], [], []
    before = Window(server)
    for _ in range(PAIRS):
        recorder = Recorder(name, server, folder, frequency)
        during = Window(server)
        recorder.end()
        found = re.search(r"(\d+) samples a second by", recorder.text)
        frequency = int(found[1]) if found else frequency
        after = Window(server)
        rates.append(during.rate / ((before.rate + after.rate) / 2))
        cpus.append(during.cpu / ((before.cpu + after.cpu) / 2))
        tails.append(during.p99 / max((before.p99 + after.p99) / 2, 0.001))
        before = after
    return statistics.median(rates), statistics.median(tails), statistics.median(cpus), sorted(rates), frequency


def one(name):
    missed = False
    folder = tempfile.mkdtemp(prefix="stalltrap-cost-")
    os.chmod(folder, 0o755)
    server = SERVERS[name](folder)
    try:
        wait_for_port(server.port)
        server.load()
        frequency = 99
        for recorder in ("arm", "watch", "perf", "bpftrace"):
            rate, tail, cpu, rates, frequency = measure(recorder, server, folder, frequency)
            goal = GOALS.get(recorder)
            missed = missed or bool(goal and rate < goal)
            print(f"{name}_{recorder} {rate:.3f} of the throughput (half of the pairs within {rates[len(rates) // 4]:.2f} to {rates[-1 - len(rates) // 4]:.2f}), "
                  f"{tail:.2f} of the 99th percentile, {cpu:.3f} of the CPU time a request vs not armed" + (f", goal {goal}" if goal else ""), flush=True)
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return missed


def main():
    names = sys.argv[2:] or list(SERVERS)
    hogs = [subprocess.Popen(["taskset", "-c", str(cpu), "python3", "-c", "while True: pass"]) for cpu in os.sched_getaffinity(0)] if os.environ.get("HOG") else []
    try:
        sys.exit(1 if any([one(name) for name in names]) else 0)
    finally:
        for hog in hogs:
            hog.kill()


main()
