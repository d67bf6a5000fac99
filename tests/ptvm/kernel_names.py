#!/usr/bin/env python3
"""kernel_names.py KALLSYMS FILE...: names in listings of calls and in trace databases, so that two of them can be compared.

The kernel has addresses with several names (__x86_indirect_thunk_array and __x86_indirect_thunk_rax); perf takes one, we another.
Every name of such an address becomes the first of them by the alphabet (an entry's, asm_*, before
others): in a listing of `perf script` ("ADDRESS NAME+0x...") or
of `decode --dump` ("FROM TO KIND NAME+0x..."), and in the symbols of a database (FILE.db).
"""
import collections
import re
import sqlite3
import sys

# An address of the kernel and its symbol.
PERF = re.compile(r"(\bffff[0-9a-f]{12} )([A-Za-z_][\w.$]*)(?=\+0x)")
DUMP = re.compile(r"((?: ffff[0-9a-f]{12}| 0 ffff[0-9a-f]{12}| ffff[0-9a-f]{12} 0) [a-z+-]+ )([A-Za-z_][\w.$]*)(?=\+0x)")


def canonical(path):
    """name -> the first of the names that share an address with it, or with one that does"""
    at = collections.defaultdict(list)
    parent = {}

    def find(name):
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.split()
            if len(fields) >= 3 and fields[1] in "tTwW":
                at[fields[0]].append(fields[2])
    for names in at.values():
        for name in names[1:]:
            a, b = sorted((find(names[0]), find(name)), key=lambda n: (not n.startswith("asm_"), n))
            parent[b] = a
    return {name: find(name) for name in list(parent) if find(name) != name}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    names = canonical(sys.argv[1])
    for path in sys.argv[2:]:
        if path.endswith(".db"):
            with sqlite3.connect(path) as db:
                db.executemany("UPDATE symbol SET name = ? WHERE name = ? AND address < 0", [(b, a) for a, b in names.items()])
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        for pattern in PERF, DUMP:
            text = pattern.sub(lambda m: m[1] + names.get(m[2], m[2]), text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
