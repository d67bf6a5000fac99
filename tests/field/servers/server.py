"""A server of Python's standard library whose requests stall as they are asked to: server.py PORT LOG. A thread a connection. It logs each stall by its
own clock: START END TID WHAT, wall-clock ns."""
import fcntl
import http.server
import os
import re
import sys
import threading
import time
import urllib.request

PORT, LOG = int(sys.argv[1]), sys.argv[2]
lock = threading.Lock()


def hold_the_lock(held):
    open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write("holder")
    with lock:
        held.set()
        for _ in range(30):
            time.sleep(0.0101)


def do_sleep(_):
    time.sleep(0.3)


def do_compute(_):
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        re.match(r"(a+)+$", "a" * 18 + "b")


def do_lock(_):
    with lock:
        pass


def do_flock(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def do_peer(port):
    urllib.request.urlopen(f"http://127.0.0.1:{port}/").read()


def do_disk(path):
    with open(path, "a") as file:
        file.write("an order\n")
        file.flush()
        os.fsync(file.fileno())


def logged(what, argument):
    start = time.time_ns()
    globals()["do_" + what](argument)
    end = time.time_ns()
    with open(LOG, "a") as file:
        file.write(f"{start} {end} {threading.get_native_id()} {what}\n")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        what, _, argument = self.path[1:].partition("=")
        if what == "lock":
            held = threading.Event()
            threading.Thread(target=hold_the_lock, args=(held,)).start()
            held.wait()
        if what != "ok":
            logged(what, argument)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
