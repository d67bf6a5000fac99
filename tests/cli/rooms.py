"""Prints what includes say against the table of rooms: a line for each include that it forbids, and for each of its lines that is idle.

usage: rooms.py TABLE, in the folder that the paths of the table begin at
"""

import fnmatch
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def read_table(path):
    rooms, allowed = {}, set()
    for line in filter(None, (raw.split("#")[0].strip() for raw in open(path))):
        if " uses " in line:
            uses, _, why = line.partition(": ")
            assert why, f"no reason: {line}"
            allowed.add(tuple(uses.split(" uses ")))
        else:
            folder, *headers = line.split()
            rooms[folder] = [f"{folder}/{header}" for header in headers]
    return rooms, allowed


def main():
    rooms, allowed = read_table(sys.argv[1])
    order = list(rooms)
    top = {folder.split("/")[0] for folder in order}
    used = set()
    for file in sorted(f for folder in sorted(top) for f in pathlib.Path(folder).rglob("*.[ch]")):
        room = str(file.parent)
        if room not in rooms:
            print(f"{file}: its folder is no room")
            continue
        for header in INCLUDE.findall(file.read_text()):
            other = str(pathlib.PurePath(header).parent)
            if other.split("/")[0] not in top or other == room:
                continue
            if (str(file), header) in allowed:
                used.add((str(file), header))
            elif not any(fnmatch.fnmatch(header, h) for h in rooms.get(other, [])):
                print(f"{file}: {header} is no header for other rooms")
            elif order.index(other) > order.index(room):
                print(f"{file}: {header} is of a room below it")
    for file, header in sorted(allowed - used):
        print(f"{file} does not use {header}")
    for header in sorted(sum(rooms.values(), [])):
        if not list(pathlib.Path().glob(header)):
            print(f"{header} is not there")


main()
