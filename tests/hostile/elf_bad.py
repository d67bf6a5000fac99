"""Writes hostile copies of an ELF file: elf_bad.py PROGRAM FOLDER; a line "NAME RUNS" each.

RUNS is "runs" where the kernel starts it all the same: the loader reads no section.
"""

import os
import pathlib
import struct
import sys

SHOFF, SHENTSIZE, SHNUM, SHSTRNDX, PHNUM = 40, 58, 60, 62, 56
SYMTAB, NOTE = 2, 7


def sections(data):
    (shoff,) = struct.unpack_from("<Q", data, SHOFF)
    (n,) = struct.unpack_from("<H", data, SHNUM)
    return [shoff + 64 * i for i in range(n)]


def put(data, at, form, value):
    data = bytearray(data)
    struct.pack_into(form, data, at, value)
    return bytes(data)


def set_sections(data, type_, field, value):
    for at in sections(data):
        if struct.unpack_from("<I", data, at + 4)[0] == type_:
            data = put(data, at + field, "<Q", value)
    return data


def variants(data):
    for n in (0, 1, 16, 63, 64, 65, 4096, len(data) // 2, len(data) - 1):
        yield f"cut-{n}", data[:n], 0, False
    yield "sections-65535", put(data, SHNUM, "<H", 65535), 0, True
    yield "sections-beyond", put(data, SHOFF, "<Q", 1 << 62), 0, True
    yield "sections-on-head", put(data, SHOFF, "<Q", 0), 0, True
    yield "sections-of-1-byte", put(data, SHENTSIZE, "<H", 1), 0, True
    yield "names-beyond", put(data, SHSTRNDX, "<H", 65000), 0, True
    yield "segments-65535", put(data, PHNUM, "<H", 65535), 0, False
    more = put(put(data, SHNUM, "<H", 0), sections(data)[0] + 32, "<Q", 1 << 40)
    yield "sections-2^40", more, 1 << 42, True
    yield "symbols-2^35", set_sections(data, SYMTAB, 32, 24 << 35), 1 << 42, True
    yield "symbols-2^28", set_sections(data, SYMTAB, 32, 24 << 28), 1 << 34, True
    yield "symbols-of-no-size", set_sections(data, SYMTAB, 56, 0), 0, True
    yield "symbols-on-head", set_sections(data, SYMTAB, 24, 0), 0, True
    yield "notes-2^40", set_sections(data, NOTE, 32, 1 << 40), 1 << 42, True
    yield "notes-beyond", set_sections(data, NOTE, 24, 1 << 62), 0, True


def main():
    program, folder = map(pathlib.Path, sys.argv[1:])
    for name, data, size, runs in variants(program.read_bytes()):
        path = folder / name
        path.write_bytes(data)
        if size:
            os.truncate(path, size)
        path.chmod(0o755)
        print(name, "runs" if runs else "-")


main()
