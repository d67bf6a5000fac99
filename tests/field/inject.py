"""Makes the stalls of the field tests, and the normal load beside them: inject.py WHAT ARG... What makes stalls waits for the file `go`,
goes on until it is killed, and logs each in `truth` (see lib.sh)."""
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import time

MS = 1_000_000


def log(start, end, least, tid, row):
    with open("truth", "a") as file:
        file.write(f"{start} {end} {int(least)} {tid} {row}\n")


def go():
    while not os.path.exists("go"):
        time.sleep(0.01)
    time.sleep(0.1)


def again(row, make, pause=0.3):
    """Makes the stall again and again. MAKE gives how long it was at least, in ns, and the thread or 0."""
    go()
    while True:
        start = time.time_ns()
        least, tid = make()
        log(start, time.time_ns(), least, tid, row)
        time.sleep(pause)


class Redis:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", int(port)), timeout=60).makefile("rwb")

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        self.file.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self.file.flush()
        return self.answer()

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-" or not line:
            raise OSError(line.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return rest

    def slowest(self, *words):
        """Asks, and tells what redis itself measured, in ns."""
        self.ask("slowlog", "reset")
        self.ask(*words)
        return max((entry[2] * 1000 for entry in self.ask("slowlog", "get", 10) if entry[3][0].lower() == words[0].encode()), default=0)


SPIN = "local x = 0 for i = 1, tonumber(ARGV[1]) do x = x + i % 7 end return x"


def redis(port, row):
    server = Redis(port)
    server.ask("config", "set", "slowlog-log-slower-than", 50_000)
    many = 1_000_000
    while row == "redis-lua" and server.slowest("eval", SPIN, 0, many) < 250 * MS:
        many *= 2
    if row == "redis-keys":
        server.ask("debug", "populate", many)
        while server.slowest("keys", "*:7*7?") < 200 * MS:
            many *= 2
            server.ask("debug", "populate", many)
    ask = {"redis-sleep": ("debug", "sleep", 0.3), "redis-lua": ("eval", SPIN, 0, many), "redis-keys": ("keys", "*:7*7?")}[row]
    open("prepared", "w").close()
    again(row, lambda: (server.slowest(*ask), 0))


def redis_load(port):
    server = Redis(port)
    while True:
        for n in range(5):
            server.ask("set", f"load:{n}", n)
            server.ask("get", f"load:{n}")
        time.sleep(0.02)


def http_load(port):
    """A request after the other, each over a connection of its own."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
        connection.close()
        time.sleep(0.01)


def line_load(port, question):
    """Sends a line again and again, and reads what comes back."""
    peer = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
    while True:
        peer.sendall(question.encode() + b"\r\n")
        peer.recv(65536)
        time.sleep(0.01)


def stop(pid):
    """Stops a process for a while. Who waits for it logs how long that was."""
    go()
    while True:
        os.kill(int(pid), signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(int(pid), signal.SIGCONT)
        time.sleep(0.4)


def stop_server(row, *pids):
    """The same with all processes of a server, and logs it: least is what a request that came soon after waited."""
    pids = [int(pid) for pid in pids]

    def make():
        for number, wait in ((signal.SIGSTOP, 0.3), (signal.SIGCONT, 0)):
            for pid in pids:
                os.kill(pid, number)
            time.sleep(wait)
        return 230 * MS, 0
    again(row, make)


def answer(path):
    """Answers a question of one byte after a while: the FIFO PATH.asked has the questions, PATH the answers. The program logs how long it waited."""
    with open(path + ".asked", "r+b", buffering=0) as asked, open(path, "r+b", buffering=0) as file:
        while asked.read(1):
            time.sleep(0.3)
            file.write(b"x")


def flock(path, lock=fcntl.flock):
    """Holds the lock of a file, for which the program asks all the time. The program logs how long it waited."""
    go()
    with open(path, "w") as file:
        while True:
            lock(file, fcntl.LOCK_EX)
            time.sleep(0.3)
            lock(file, fcntl.LOCK_UN)
            time.sleep(0.3)


def record_lock(path):
    """The same with the other kind of locks."""
    flock(path, fcntl.lockf)


def statements(psql, each, once, pause):
    """A session of PostgreSQL's that makes one statement all the time, and another one now and then; the server logs how long that took."""
    with subprocess.Popen(psql.split(), stdin=subprocess.PIPE, text=True, bufsize=1) as session:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(session.kill()))
        session.stdin.write("SELECT pg_backend_pid();\n")
        while session.poll() is None:
            for _ in range(30):
                session.stdin.write(each + "\n")
                time.sleep(float(pause))
            if os.path.exists("go"):
                session.stdin.write(once + "\n")


def hog(cpu, row):
    """Takes a CPU from all who are no real-time threads."""
    open("/proc/self/comm", "w").write("cpu-hog")

    def make():
        os.sched_setaffinity(0, {int(cpu)})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        start = time.monotonic_ns()
        while time.monotonic_ns() - start < 300 * MS:
            pass
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return 270 * MS, 0
    again(row, make, pause=0.6)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
