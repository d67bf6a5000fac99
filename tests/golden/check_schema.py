#!/usr/bin/env python3
"""check_schema.py SOURCE: docs/schema.md tells of every table, column, view, index, flag, gap and meta key that there is, and of no other; its
queries run. Names are taken from the SQL and the C source.
   check_schema.py SOURCE TRACE.db...: each of these databases holds nothing that the page does not tell of.
Prints a line a difference; exit 1 when there are any."""
import glob
import re
import sqlite3
import sys

found = []


def differ(what, there, told):
    for name in sorted(set(there) - set(told)):
        found.append(f"{what}: docs/schema.md does not tell of '{name}'")
    for name in sorted(set(told) - set(there)):
        found.append(f"{what}: docs/schema.md tells of '{name}', which is not there")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Page:
    def __init__(self, text):
        self.text = text
        self.sections = {m[1]: m[2] for m in re.finditer(r"^##+ (.+)\n((?:(?!^##).*\n?)*)", text, re.M)}

    def first_column(self, section, header):
        """What the table that begins with `header` lists, "a, b" as two."""
        table = re.search(rf"^\| {header} \|.*\n\|[-| ]+\n((?:\|.*\n?)*)", self.sections[section], re.M)
        cells = [row.split("|")[1].strip() for row in table[1].splitlines()]
        return [name for cell in cells for name in cell.split(", ")]

    def tables(self):
        """table -> columns, of "`name(column, ...)`"; the views that a table builds on are filled in"""
        tables = {m[1]: m[2].replace("\n", " ").split(", ") for m in re.finditer(r"^`(\w+)\(([^)]*)\)`", self.sections["Tables"], re.M)}
        for m in re.finditer(r"^`(\w+)`: the view's columns,? and ((?:.|\n)*?)(?:\n\n|\Z)", self.sections["Tables"], re.M):
            base = self.first_column({"stall": "stalls", "gap": "gaps"}[m[1]], "column")
            tables[m[1]] = base + re.findall(r"`(\w+)`", re.sub(r"rows of\s+`\w+`", "", m[2]))
        return tables

    def view(self, name):
        section = self.sections[name]
        if "| column |" in section:
            return self.first_column(name, "column")
        return re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", section.split(". `")[0]))

    def indexes(self):
        text = re.search(r"^Indexes: ((?:.|\n)*?)\.\n\n", self.sections["Tables"], re.M)[1].replace("\n", " ")
        indexes = set()
        for part in text.split("; "):
            table, columns = re.match(r"`(\w+)` by (.*)", part).groups()
            for m in re.finditer(r"\(([^)]*)\)|(\w+)", columns.replace(" and ", " ").replace(", by ", " ").replace(" by ", " ")):
                indexes.add((table, m[1] or m[2]))
        return indexes


def check_sql(page, db):
    names = {kind: [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = ?", (kind,))] for kind in ("table", "view")}

    def columns(name):
        return [r[1] for r in db.execute(f"PRAGMA table_info({name})")]

    differ("tables", names["table"], page.tables())
    for name in names["table"]:
        joined = {"tid", "thread"} if name == "stall" else set()  # of the view alone
        differ(f"columns of {name}", columns(name), set(page.tables().get(name, [])) - joined)
    for name in names["view"]:
        differ(f"columns of {name}", columns(name), page.view(name))
    there = {(table, ", ".join(r[2] for r in db.execute(f"PRAGMA index_info({index})")))
             for table, index in db.execute("SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")}  # fmt: skip
    differ("indexes", [f"{t} {c}" for t, c in there], [f"{t} {c}" for t, c in page.indexes()])
    for sql in re.findall(r'^    sqlite3 \S+ "(.*)"$', page.text, re.M) + re.findall(r"^    ((?:SELECT|WITH) .*)$", page.text, re.M):
        try:
            db.execute(sql).fetchall()
        except sqlite3.Error as error:
            found.append(f"a query of docs/schema.md does not run: {sql}: {error}")


def check_source(page, source):
    header = read(f"{source}/tracedb/tracedb.h")
    flags = {m[1] for m in re.finditer(r"TDB_CALL_\w+ = (\d+)", header)}
    differ("flags of calls", flags - {"256"}, page.first_column("calls", "bit"))
    if not re.search(r"One flag\s+more: 256", page.text):
        found.append("flag 256 of call is not told of")
    version = re.search(r"TDB_\w*VERSION = (\d+)|define TDB_\w*VERSION\s+(\d+)", header)
    if f"the schema's version, now {version[1] or version[2]}:" not in page.text or f"**{version[1] or version[2]}**" not in page.sections["Changelog"]:
        found.append(f"version {version[1] or version[2]} of the schema is not told of")
    reasons = set(re.findall(r'\[DEC_GAP_\w+\] = "([^"]+)"', read(f"{source}/decoder/event/event.c")))
    reasons |= set(re.findall(r'\.lost = true, \.name = "([^"]+)"', read(f"{source}/decoder/sideband/meta.c")))
    samples = read(f"{source}/decoder/model/chains.c")  # has some of its own
    differ("gaps", reasons | {r for r in page.first_column("gaps", "reason") if f'"{r}"' in samples}, page.first_column("gaps", "reason"))
    pseudo = re.findall(r'"(\[\w+\])"', re.search(r"dec_pseudo_name.*?\{.*?\{(.*?)\}", read(f"{source}/decoder/callstack/stack.c"), re.S)[1])
    differ("pseudo calls", pseudo, page.first_column("Pseudo calls", "function"))
    keys = set()
    for path in glob.glob(f"{source}/decoder/model/**/*.c", recursive=True):
        text = read(path)
        keys |= set(re.findall(r'(?:tdb_set_meta_\w+|put_text)\(w, "(\w+)"', text))
        keys |= {f"{name}.PID" for name in re.findall(r'sscanf\(meta->text, "(\w+)\.%d="', text)}
        for table in re.findall(r"(?:texts|times|numbers)\[\]\[2\] = \{(.*?)\};", text, re.S):
            keys |= set(re.findall(r'\{"\w+",\s*"(\w+)"\}', table))
        for table in re.findall(r"\} counts\[\] = \{(.*?)\};", text, re.S):
            keys |= set(re.findall(r'\{"(\w+)",', table))
    differ("meta", keys, page.first_column("meta", "key"))


def check_database(page, path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def none_but(what, sql, told):
        for (name,) in db.execute(sql):
            if name not in told:
                found.append(f"{path}: {what}: docs/schema.md does not tell of '{name}'")

    none_but("meta", "SELECT iif(key GLOB '*.[0-9]*', substr(key, 1, instr(key, '.')) || 'PID', key) FROM meta", page.first_column("meta", "key"))
    none_but("gap", "SELECT DISTINCT reason FROM gap", page.first_column("gaps", "reason"))
    none_but("stall", "SELECT DISTINCT kind FROM stall", re.search(r"^\| kind \| (.*) \|", page.text, re.M)[1].split(", "))
    none_but("mark", "SELECT DISTINCT name FROM mark", re.findall(r"`(\w+)`", re.search(r"^`mark\((?:.|\n)*?\n\n", page.text, re.M)[0]))
    bits = sum(int(bit) for bit in page.first_column("calls", "bit"))
    none_but("flags of calls", f"SELECT flags & ~{bits} FROM calls", [0])
    none_but("flags of call", f"SELECT DISTINCT flags & ~{bits | 256} FROM call", [0])
    states = re.sub(r"\(.*?\)", "", re.search(r"^\| state \| of the thread meanwhile: (.*) \|", page.text, re.M)[1]).split(", ")
    none_but("state", "SELECT DISTINCT state FROM stall WHERE state IS NOT NULL", [s.strip() for s in states])
    none_but("pseudo calls", "SELECT DISTINCT function FROM calls WHERE kernel AND function GLOB '[[]*]' AND module = '[kernel]' AND function NOT GLOB '*+0x*'",
             page.first_column("Pseudo calls", "function") + ["[kernel]"])  # fmt: skip
    if db.execute("SELECT value FROM meta WHERE key = 'calls'").fetchone() != db.execute("SELECT count(*) FROM call").fetchone():
        found.append(f"{path}: meta.calls is not the number of calls")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    source = sys.argv[1]
    page = Page(read(f"{source}/docs/schema.md"))
    if len(sys.argv) == 2:
        db = sqlite3.connect(":memory:")
        db.executescript(read(f"{source}/tracedb/schema.sql") + read(f"{source}/tracedb/indexes.sql"))
        check_sql(page, db)
        check_source(page, source)
    for path in sys.argv[2:]:
        check_database(page, path)
    print("\n".join(found) or "docs/schema.md tells all there is")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
