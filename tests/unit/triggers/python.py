"""Threads that wait in many ways, and what Python itself says of where they are: an empty line behind each."""
import contextlib
import functools
import os
import sys
import threading
import time

never = threading.Lock()
never.acquire()
tids = {}


def wait():
    tids[threading.get_ident()] = threading.get_native_id()
    never.acquire()


class Outer:
    class Inner:
        @staticmethod
        def still():
            (
                wait
            )()

        @property
        def value(self):
            return self.still()

    def __enter__(self):
        return Outer.Inner().value

    def __exit__(self, *why):
        pass


def naïve_名前():
    def generator(n):
        if n:
            yield from generator(n - 1)
        else:
            yield wait()

    return list(generator(3))


def in_a_call_of_c():
    return sorted([2, 1], key=lambda x: functools.reduce(lambda a, b: wait(), [1, 2]))


def while_it_handles():
    try:
        raise ValueError(
            "one")
    except ValueError:
        with contextlib.suppress(KeyError):
            for i in [1,

                      2]:
                [wait() for _ in "x"]


def with_something():
    with Outer() as never_there:
        print(never_there)


def deep(n):
    return deep(n - 1) if n else wait()


def far(n):
    a = 1
    if n < 0:
        return [
            1,
            2,
            3,
        ]





























































































    return (a +
            deep(2) +
            1)


exec("def made():\n\n\n  wait()", globals())

threads = [threading.Thread(target=f, args=a, daemon=True)
           for f, a in ((naïve_名前, ()), (in_a_call_of_c, ()), (while_it_handles, ()), (with_something, ()), (deep, (5,)), (deep, (40,)),
                        (far, (1,)), (made, ()))]
for thread in threads:
    thread.start()
while len(tids) < len(threads):
    time.sleep(0.01)
time.sleep(0.1)
os.write(1, b"ready\n")
for ident, tid in tids.items():
    frame = sys._current_frames()[ident]
    lines = [f"thread {tid}"]
    while frame:
        lines.append(f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})")
        frame = frame.f_back
    os.write(1, ("\n".join(lines) + "\n\n").encode())
os.write(1, b"done\n")
time.sleep(100)
