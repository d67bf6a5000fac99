#!/usr/bin/env python3
"""db_tree.py TRACE.db FUNCTIONS: prints the call tree of each thread as tests/workloads describes it.

Only the functions that FUNCTIONS (a file, one a line) names count; what other functions call is called by the one that encloses them.
Tail calls are the next sibling of their caller (treecheck --tails sibling). Frames whose call was not seen are left out: a program that
was recorded from its first instruction has them only where a child goes on in frames that it inherited, and where a thread comes back to
a stack that it left (a coroutine).
"""
import sqlite3
import sys

NO_CALL, NO_RETURN, TAIL = 1, 2, 4


def threads(db):
    return db.execute("SELECT id, name FROM threads WHERE calls > 0 ORDER BY id").fetchall()


def tree(db, thread, own):
    level = {}  # of a call's children, by the id of the call
    for call, parent, function, flags in db.execute(
        "SELECT id, parent_id, function, flags FROM calls WHERE thread_id = ? ORDER BY id", (thread,)
    ):
        here = level[parent] if parent else 1
        counts = function in own and not flags & NO_CALL
        if counts:
            yield "  " * here + function
        level[call] = here + counts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    with open(sys.argv[2], encoding="utf-8") as names:
        own = {line.rstrip("\n") for line in names}
    for thread, name in threads(db):
        lines = list(tree(db, thread, own))
        if lines:
            print(f"thread {name}")
            print("\n".join(lines))


if __name__ == "__main__":
    main()
