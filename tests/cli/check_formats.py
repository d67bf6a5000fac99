#!/usr/bin/env python3
"""Every table and view of a database through `stalltrap query`, in each format, against what SQLite itself reads.

usage: check_formats.py STALLTRAP TRACE.db
"""
import csv
import io
import json
import math
import sqlite3
import subprocess
import sys


def decoded(raw):
    """As JSON text has it: each byte that is no UTF-8 is U+FFFD."""
    out = ""
    while raw:
        try:
            return out + raw.decode()
        except UnicodeDecodeError as bad:
            out += raw[: bad.start].decode() + "\ufffd" * (bad.end - bad.start)
            raw = raw[bad.end :]
    return out


def as_json(value, kind):
    if kind == "text":
        return decoded(value)
    if kind == "blob":
        return value.hex()
    if kind == "real":
        return value if math.isfinite(value) else None
    return value


def as_csv(value, kind, text):
    """Bytes. A text ends at a NUL, as for sqlite3's own shell, and is UTF-8; reals are as SQLite prints them."""
    if kind == "null":
        return b""
    if kind == "blob":
        return value.hex().encode()
    return decoded(text.split(b"\0")[0]).encode()


class Check:
    def __init__(self, program, path):
        self.program, self.path = program, path
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.text_factory = bytes
        self.failed = 0

    def query(self, sql, output):
        run = subprocess.run([self.program, "query", self.path, sql, "--format", output], capture_output=True, timeout=60)
        if run.returncode or run.stderr:
            sys.exit(f"query of {sql} as {output} ends with {run.returncode}: {run.stderr}")
        return run.stdout

    def expect(self, what, wanted, got):
        if wanted != got:
            print(f"{what}:\n  expected {wanted!r}\n  got      {got!r}")
            self.failed += 1

    def table(self, name):
        columns = [row[1] for row in self.db.execute(f"PRAGMA table_info({name})")]
        columns = [c.decode() for c in columns]
        listed = ", ".join(columns)
        kinds = ", ".join(f"typeof({c})" for c in columns)
        texts = ", ".join(f"CAST({c} AS TEXT)" for c in columns)
        sql = f"SELECT {listed} FROM {name}"
        rows = self.db.execute(sql).fetchall()
        kinds = [[k.decode() for k in row] for row in self.db.execute(f"SELECT {kinds} FROM {name}")]
        texts = self.db.execute(f"SELECT {texts} FROM {name}").fetchall()
        if not rows:
            sys.exit(f"{name} is empty: the database tests nothing")

        raw = self.query(sql, "json")
        if any(c < 32 and c != 10 or c == 127 for c in raw):
            self.expect(f"{name}: control characters in the JSON", "none", "some")
        got = json.loads(raw.decode())  # strict: fails on bytes that are no UTF-8 and on raw controls
        self.expect(f"{name}: rows of the JSON", len(rows), len(got))
        for number, (row, kind, mine) in enumerate(zip(rows, kinds, got), 1):
            self.expect(f"{name}: columns", columns, list(mine))
            self.expect(f"{name}, row {number}", [as_json(*pair) for pair in zip(row, kind)], list(mine.values()))

        raw = self.query(sql, "csv").decode("latin-1")
        got = list(csv.reader(io.StringIO(raw, newline="")))
        wanted = [[as_csv(*cell).decode("latin-1") for cell in zip(*row)] for row in zip(rows, kinds, texts)]
        if len(columns) == 1:  # an empty line for an empty field
            got = [row or [""] for row in got]
        self.expect(f"{name}: CSV", [columns] + wanted, got)

        raw = self.query(sql, "table")
        if any(c < 32 and c != 10 or c == 127 for c in raw):
            self.expect(f"{name}: control characters in the table", "none", "some")
        self.expect(f"{name}: lines of the table", len(rows) + 2, raw.decode().count("\n"))


def main():
    check = Check(sys.argv[1], sys.argv[2])
    names = [n.decode() for (n,) in check.db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'")]
    for name in names:
        check.table(name)
    print(f"{len(names)} tables and views, {check.failed} differences")
    return 1 if check.failed or len(names) < 18 else 0


if __name__ == "__main__":
    sys.exit(main())
