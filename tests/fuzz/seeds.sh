#!/bin/bash
# The inputs that fuzzing TARGET begins with, and those that once failed. PROGRAMS is the folder of the built fuzz targets.
# usage: seeds.sh TARGET PROGRAMS FOLDER | seeds.sh --targets
set -eu
here=$(dirname "$(realpath "$0")")
source=$here/../..
if [ "$1" = --targets ]; then
    ls "$here"/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||'
    exit
fi
target=$1 programs=$2 to=$3

texts() { # a line of stdin is a file
    while IFS= read -r text; do printf "$text" >"$to/$(printf %s "$text" | cksum | cut -d' ' -f1)"; done
}

case $target in
perfdata) "$programs/perfdata_seeds" "$to" ;;
decode) "$programs/perfdata_seeds" "$to" ;;
flow) "$programs/flow_seeds" "$to" ;;
elf) cp "$programs/libelf_seed.so" "$programs/elf_seed_program" "$to" ;;
dwarf) cp "$programs"/libdwarf_seed_*.so "$to" ;;
code) cp "$programs/libelf_seed.so" "$programs"/libdwarf_seed_5.so "$to" ;;
zstd) # records of the perf.data seeds, packed by the target
    "$programs/perfdata_seeds" "$to"
    for f in "$to"/*; do { printf '\001\200'; cat "$f"; } >"$f.packed"; done
    ;;
trigger) # the manual's examples, one a file
    grep -o -- "--on '[^']*'" "$source/docs/triggers.md" | cut -d"'" -f2 | sort -u |
        while read -r text; do printf %s "$text" >"$to/$(printf %s "$text" | cksum | cut -d' ' -f1)"; done
    ;;
kallsyms) texts <<'END' ;;
ffffffff81000000 T _text\nffffffff81000100 t helper\nffffffff81000200 T __switch_to\nffffffffa0000000 t f\t[mod]\n
0000000000000000 T _text\n0000000000000000 t f\n
END
perfmap) texts <<'END' ;;
1000 40 first\n1040 20 LazyCompile:*two /a/b.js:1\n7f0000000000 100 stub\n
1000 40 a\r\nzz\n1000 40 b
END
jitdump) python3 "$here/jitdump_seed.py" "$to" ;;
python) # a thread with a frame, and an image with symbols
    python3 "$here/python_seed.py" "$to"
    cp "$programs/libelf_seed.so" "$to"
    ;;
control) printf '\0\004who\n\001\005snap\n\0\0\001\0' >"$to/two" ;;
http) texts <<'END' ;;
GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n
POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc
HEAD /metrics HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\n
END
database) # as small as SQLite makes it
    { echo "PRAGMA page_size = 512; PRAGMA user_version = 1; BEGIN;"
        cat "$source/tracedb/schema.sql" "$source/tests/golden/viewer/known.sql" "$source/tracedb/indexes.sql"; echo "COMMIT; VACUUM;"; } |
        sqlite3 "$to/known"
    ;;
*)
    echo "seeds.sh: no target '$target'" >&2
    exit 1
    ;;
esac
[ ! -d "$here/found/$target" ] || cp "$here/found/$target"/* "$to"
