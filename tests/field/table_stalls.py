"""What makes a stall for the table, once: each function gives the Truth of it by its own clock, or by the log of the program that stalled."""
import collections
import fcntl
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from told import MS, made

HERE = pathlib.Path(__file__).parent
PYTHON = "/usr/bin/python3"
# From when to when it was made; how long at least and at most the stall that is to be told was; its thread (0: not known); whether how long
# it was is to be asked of the observer (see table_observer.py).
Truth = collections.namedtuple("Truth", "start end least most tid observed")
GROUPS = pathlib.Path("/sys/fs/cgroup")


def measured(start, end, tid=0):
    return Truth(start, end, end - start, end - start, tid, False)


def asked(ask, *words):
    """By the clock of who asked."""
    start = time.time_ns()
    ask(*words)
    return measured(start, time.time_ns())


def lines_of(path):
    return open(path).read().splitlines() if os.path.exists(path) else []


def until(condition, limit=20, what="a condition"):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise TimeoutError(f"waited for {what}")


def injected(work, *words):
    """One stall by inject.py, in a folder of its own."""
    folder = pathlib.Path(work, "injector")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "go").touch()
    with subprocess.Popen([PYTHON, HERE / "inject.py", *map(str, words)], cwd=folder) as injector:
        try:
            until(lambda: (folder / "truth").exists() and (folder / "truth").read_text().endswith("\n"), what="the injector")
        finally:
            injector.kill()
    start, end, _, _ = made(folder / "truth")[0]
    return start, end


def stopped(program):
    return measured(*injected(program.work, "stop_server", "stopped", *program.pids))


def latest(program, start, end):
    """The longest answer that the load had to wait for."""
    def late():
        found = [tuple(map(int, line.split())) for line in lines_of(program.late)]
        return [one for one in found if one[0] < end and one[1] > start]
    slow = until(lambda: max(late(), key=lambda one: one[1] - one[0], default=None), 5, "the load's log of late answers")
    return slow


def unread(program):
    """Stopped: how long what the load had sent lay there is what the load waited, or less by when the kernel had it."""
    start, end = injected(program.work, "stop_server", "unread", *program.pids)
    slow = latest(program, start, end)
    return Truth(slow[0], slow[1], slow[1] - slow[0], slow[1] - slow[0], 0, False)


def pin(program, cpus):
    for pid in program.pids:
        subprocess.run(["taskset", "-a", "-c", "-p", ",".join(map(str, cpus)), str(pid)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_queue(program):
    """On the one CPU that the program may have meanwhile."""
    cpus = os.sched_getaffinity(program.pids[0])
    try:
        pin(program, {program.cpu})
        start, end = injected(program.work, "hog", program.cpu, "hog")
    finally:
        pin(program, cpus)
    return Truth(start, end, 0, 0, 0, True)


class Group:
    """A control group of the program's own, which is gone with the program."""

    def __init__(self, controller):
        self.path = GROUPS / controller / f"stalltrap-field-{os.getpid()}"

    def __enter__(self):
        self.path.mkdir(exist_ok=True)
        return self

    def take(self, pids):
        for pid in pids:
            (self.path / "cgroup.procs").write_text(str(pid))

    def set(self, name, value):
        (self.path / name).write_text(str(value))

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            (self.path.parent / "cgroup.procs").write_text(pid)
        self.path.rmdir()


def old_groups():
    """Those of runs that were killed."""
    for path in GROUPS.glob("*/stalltrap-field-*"):
        if not os.path.exists(f"/proc/{path.name.rsplit('-', 1)[1]}"):
            if (path / "freezer.state").exists():
                (path / "freezer.state").write_text("THAWED")
            for pid in (path / "cgroup.procs").read_text().split():
                (path.parent / "cgroup.procs").write_text(pid)
            path.rmdir()


def fcntl_pipe_size(pipe, size):
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)


def can_throttle():
    return (GROUPS / "cpu/cpu.cfs_quota_us").exists()


def can_freeze():
    return (GROUPS / "freezer/cgroup.procs").exists()


def throttled(program):
    """A quota of 1 ms of CPU time in 330: what the load costs."""
    with Group("cpu") as group:
        group.take(program.pids)
        start = time.time_ns()
        group.set("cpu.cfs_period_us", 330_000)
        group.set("cpu.cfs_quota_us", 1000)
        time.sleep(1.5)
        group.set("cpu.cfs_quota_us", -1)
    return Truth(start, time.time_ns(), 0, 0, 0, True)


def frozen(program):
    with Group("freezer") as group:
        group.take(program.pids)
        start = time.time_ns()
        group.set("freezer.state", "FROZEN")
        time.sleep(0.3)
        group.set("freezer.state", "THAWED")
        end = time.time_ns()
    return measured(start, end)


class Disk:
    """A file system on a loop device on slow_disk.py, in FOLDER/disk."""

    def __init__(self, folder):
        self.below, self.image, self.path = f"{folder}/fuse", f"/dev/shm/stalltrap-field-{os.getpid()}.img", f"{folder}/disk"
        os.mkdir(self.below)
        os.mkdir(self.path)
        with open(self.image, "w") as file:
            file.truncate(512 * MS)
        self.daemon = subprocess.Popen([PYTHON, HERE / "slow_disk.py", self.below, self.image], stdout=subprocess.PIPE)
        try:
            subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", self.image], check=True)
            self.daemon.stdout.readline()
        finally:
            os.unlink(self.image)
        subprocess.run(["mount", "-o", "loop", f"{self.below}/disk", self.path], check=True)
        os.chmod(self.path, 0o777)

    def end(self):
        subprocess.run(["umount", self.path], check=False)
        subprocess.run(["umount", self.below], check=False)
        self.daemon.terminate()
        self.daemon.wait()

    def slow(self, act=lambda: None):
        """No write ends for 300 ms, in which ACT is done."""
        thread = threading.Thread(target=act)
        start = time.time_ns()
        open(self.below + ".slow", "w").close()
        thread.start()
        try:
            time.sleep(0.3)
        finally:
            os.unlink(self.below + ".slow")
        end = time.time_ns()
        thread.join()
        return start, end


def slow_disk(act=None):
    """The program writes by itself, or ACT asks it to. How long it waited tells the observer."""
    def make(program):
        start, end = program.disk.slow(lambda: act and act(program))
        return Truth(start, max(end, time.time_ns()), 0, 0, 0, True)
    return make


class Peer(http.server.BaseHTTPRequestHandler):
    """A server that answers at once, or once after 300 ms; from then to then it made its client wait."""
    slow = threading.Event()
    waited = []

    def do_GET(self):
        start = time.time_ns()
        if "slow" in self.path or self.slow.is_set():
            self.slow.clear()
            time.sleep(0.3)
            self.waited.append((start, time.time_ns()))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    Peer.slow.clear()
    signal.signal(signal.SIGUSR1, lambda *_: Peer.slow.set())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Peer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = 0
    while True:
        time.sleep(0.01)
        for start, end in Peer.waited[told:]:
            print(start, end, 0, "peer", flush=True)
            told += 1
