#!/usr/bin/env python3
"""check_nest_tree.py TRACE.db N: the calls below main() must be the tree that `nest N` (tests/ptvm/nest.c) runs through."""
import sqlite3
import sys


class Nest:
    """nest.c as (depth below main, function), in the order of the calls."""

    def __init__(self, n):
        self.tree = []
        self.call(1, "outer", lambda d: [self.round(d, i) for i in range(n)])

    def call(self, depth, name, body=lambda d: None):
        self.tree.append((depth, name))
        body(depth + 1)

    def round(self, depth, i):
        self.rec(depth, i % 5)
        self.call(depth, "viaptr", self.leaf if i & 1 else self.mid)

    def rec(self, depth, n):
        def body(d):
            if n <= 0:
                self.leaf(d)
            else:
                self.rec(d, n - 1)
                self.mid(d)

        self.call(depth, "rec", body)

    def mid(self, depth):
        self.call(depth, "mid", lambda d: [self.leaf(d) for _ in range(3)])

    def leaf(self, depth):
        self.call(depth, "leaf")


OWN = "('leaf', 'mid', 'rec', 'viaptr', 'outer')"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    (base,) = db.execute("SELECT depth FROM calls WHERE function = 'main'").fetchone() or sys.exit("no call of main")
    rows = db.execute(
        f"SELECT c.depth - ?, c.function, c.id, c.flags & 7, p.function FROM calls c LEFT JOIN calls p ON p.id = c.parent_id "
        f"WHERE c.function IN {OWN} AND c.module = 'nest' ORDER BY c.id", (base,),
    ).fetchall()  # fmt: skip
    want = Nest(int(sys.argv[2])).tree
    for i, (have, expected) in enumerate(zip(rows, want)):
        if have[:2] != expected or have[3]:
            sys.exit(f"call {i} (id {have[2]}, flags {have[3]}, in {have[4]}): {have[1]} at depth {have[0]}, expected {expected}")
    if len(rows) != len(want):
        sys.exit(f"{len(rows)} calls, expected {len(want)}")
    print(f"{sys.argv[1]}: {len(rows)} calls, the tree of nest {sys.argv[2]}")


if __name__ == "__main__":
    main()
