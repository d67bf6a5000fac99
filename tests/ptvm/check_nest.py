#!/usr/bin/env python3
"""check_nest.py LISTING N [LEAST]: compares a `perf script --itrace=cr` listing with the calls `nest N` must make.

With LEAST the listing is the end of them (of a ring that wrapped), and has at least so many.

Only the calls and returns of nest's own functions count, in their order. Exit 0: equal; 1: not, with the first difference told.
"""
import re
import sys

OURS = {"leaf", "mid", "rec", "viaptr", "outer"}
# "... call  ADDRESS SYMBOL+0xOFFSET (DSO) => ADDRESS SYMBOL+0xOFFSET (DSO)"; offsets and DSOs may be missing.
BRANCH = re.compile(r"\s(call|return)\s+[0-9a-f]+ ([^\s+]+)\S*(?: \([^)]*\))? =>\s+[0-9a-f]+ ([^\s+]+)")


class Nest:
    """Makes nest.c's calls and writes them down as (kind, from, to)."""

    def __init__(self, n):
        self.log = []
        self.call("main", "outer", lambda: [self.round(i) for i in range(n)])

    def call(self, caller, callee, body):
        self.log.append(("call", caller, callee))
        body()
        self.log.append(("return", callee, caller))

    def round(self, i):
        self.rec("outer", i % 5)
        last = self.leaf if i & 1 else self.mid
        self.call("outer", "viaptr", lambda: last("viaptr"))

    def rec(self, caller, n):
        def body():
            if n <= 0:
                self.leaf("rec")
            else:
                self.rec("rec", n - 1)
                self.mid("rec")

        self.call(caller, "rec", body)

    def mid(self, caller):
        self.call(caller, "mid", lambda: [self.leaf("mid") for _ in range(3)])

    def leaf(self, caller):
        self.call(caller, "leaf", lambda: None)


def listed(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            m = BRANCH.search(line)
            if m and (m[3] if m[1] == "call" else m[2]) in OURS:
                yield number, m.groups()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    expected = Nest(int(sys.argv[2])).log
    got = list(listed(sys.argv[1]))
    if len(sys.argv) == 4:
        if len(got) < int(sys.argv[3]):
            sys.exit(f"{sys.argv[1]}: only {len(got)} calls and returns are listed")
        expected = expected[-len(got) :]
    for i, (want, (number, have)) in enumerate(zip(expected, got)):
        if want != have:
            sys.exit(f"{sys.argv[1]}:{number}: call {i}: expected {want}, listed {have}")
    if len(expected) != len(got):
        sys.exit(f"{sys.argv[1]}: expected {len(expected)} calls and returns, {len(got)} are listed")
    print(f"{sys.argv[1]}: {len(got)} calls and returns, all as expected")


if __name__ == "__main__":
    main()
