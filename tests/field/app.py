"""A Python program that stalls: app.py ROW [PATH]. It serves itself requests all the time; from when the file `go` is there, each so often one
stalls. It logs in `truth` (see lib.sh)."""
import fcntl
import os
import re
import sys
import threading
import time

MS = 1_000_000
row = sys.argv[1]


def logged(function):
    """Calls it, and logs it as a stall when it took long: as long as it took, but for what the machine may have taken of it."""
    start, clock = time.time_ns(), time.monotonic_ns()
    function()
    took = time.monotonic_ns() - clock
    if took > 150 * MS:
        with open("truth", "a") as file:
            file.write(f"{start} {time.time_ns()} {took - 20 * MS} {threading.get_native_id()} {row}\n")


def told(where="where"):
    """Where it was called, as report prints it, into a file: the stall is made, or ended, in the same line."""
    frame, frames = sys._getframe(1), []
    while frame:
        frames.append(f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})")
        frame = frame.f_back
    with open(where, "w") as file:
        file.write(" < ".join(frames) + "\n")


def named(name):
    open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write(name)


def serve(stall):
    """Requests of 10 ms each; one in thirty stalls."""
    while True:
        for _ in range(30):
            sum(range(1000))
            time.sleep(0.01)
        if os.path.exists("go"):
            logged(stall)


def slow_regex():
    start = time.monotonic_ns()
    while time.monotonic_ns() - start < 300 * MS:
        re.match(r"(a+)+$", "a" * 18 + "b")


def python_sleep():
    serve(lambda: told() or time.sleep(0.3))


def python_busy():
    serve(slow_regex)


def python_flock(lock=fcntl.flock):
    file = open(sys.argv[2], "w")

    def ask():
        told(), lock(file, fcntl.LOCK_EX)
        lock(file, fcntl.LOCK_UN)

    while True:
        logged(ask)
        time.sleep(0.01)


def python_fcntl():
    python_flock(fcntl.lockf)


def python_lock():
    lock = threading.Lock()

    def hold():
        named("holder")
        while True:
            time.sleep(0.1)
            if os.path.exists("go"):
                lock.acquire()
                times = 2 if row == "python-holder" else 30
                for _ in range(times):
                    time.sleep(0.3 / times)
                told("released"), lock.release()

    def ask():
        named("worker")
        while True:
            logged(lambda: told() or lock.acquire() and lock.release())
            time.sleep(0.01)

    threads = [threading.Thread(target=target) for target in (hold, ask)]
    for thread in threads:
        thread.start()
    while True:
        time.sleep(0.02)


python_holder = python_lock
open("prepared", "w").close()
globals()[row.replace("-", "_")]()
