#!/usr/bin/env python3
"""Fills an empty trace database with what a hostile or damaged recording could put there.

usage: hostile_db.py TRACE.db [EMPTY-TABLE]
"""
import itertools
import sqlite3
import sys

TEXTS = [
    "plain",
    "",
    "\x1b[31mred\x1b]0;title\x07",
    'quo"te\'s, comma; \\back\\',
    "two\nlines\r\nand\ttab",
    b"\xff\xfe invalid \xc3( \xed\xa0\x80",
    "nul\0inside",
    "wide \u6f22\u5b57 combining e\u0301 \U0001f600",
    "\u202eoverride\u2066isolate\u2028separator\x85\x9b31m",
    "%s%n%d {} `id` $(id) <b>&amp;",
    "x" * 5000,
    b"a blob \x00\xff",
]
NUMBERS = [0, 1, -1, 2**31, 2**63 - 1, -(2**63), 10**9, 1.5, float("inf"), 1e300, "text in a number's place", None]


def turned(values, by):
    """The values again and again, from another one on in each row."""
    return itertools.islice(itertools.cycle(values), by % len(values), None)


def main():
    db = sqlite3.connect(sys.argv[1])
    db.text_factory = bytes
    tables = [row[0].decode() for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    for table in tables:
        if table in sys.argv[2:]:
            continue
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        for row in range(1, 3 * len(TEXTS)):
            values = []
            texts, numbers = turned(TEXTS, row), turned(NUMBERS, 5 * row)
            for _, name, kind, needed, _, key in columns:
                if key and kind == b"INTEGER" or name.endswith(b"_id"):
                    values.append(row if key else row // 2)  # every row has a parent, the first has itself
                elif kind == b"INTEGER":
                    number = next(numbers)
                    values.append(0 if needed and number is None else number)
                else:
                    values.append(next(texts))
            marks = ", ".join("CAST(? AS TEXT)" if isinstance(v, bytes) and not v.startswith(b"a blob") else "?" for v in values)
            db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)
    # Parents in circles, of calls that were open when the stall began.
    db.execute("UPDATE call SET parent_id = 9 - id, thread_id = 1, start_ns = -5, duration_ns = 1000, depth = 3 WHERE id IN (4, 5)")
    db.execute("UPDATE call SET parent_id = id, thread_id = 1 WHERE id % 3 = 1 AND id > 5")
    db.execute("UPDATE stall SET thread_id = 1, start_ns = 0, waker_thread_id = 1, wake_ns = 1 WHERE id = 1")
    db.execute("INSERT OR REPLACE INTO meta VALUES ('trigger_stall_id', 1)")
    db.commit()


if __name__ == "__main__":
    main()
