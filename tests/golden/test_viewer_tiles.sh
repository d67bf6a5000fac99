#!/bin/bash
# A trace of 200,000 calls is drawn from tiles as from the calls themselves: the same bars, and where short calls are put together,
# something is drawn wherever there is a call. Then every key in a made trace: no frame fails, and none reads the whole trace.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 TERM=dumb
cd "$work" || exit 1
passed=0 failed=0

"$BUILD/tests/bench/make_trace" made.db 200000 4 || exit 1
mkdir plain
cp made.db plain/made.db
sqlite3 plain/made.db "DELETE FROM tile; UPDATE summary SET first_level = NULL, last_level = NULL"

result() { # WHAT STATUS
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1"
        failed=$((failed + 1))
    fi
}

for size in 80x24 200x60; do
    for keys in 0 0w 0www '0wwww<Enter>' 0wwwwww 0wwwwwwdd 0wwwwwwwww 0wwwwwwwwwwww 0wwwwwwwwwwwwwww t tLL '0<PgDn>www' '0<Tab>wwK'; do
        "$STALLTRAP" view made.db --size $size --keys "$keys" --screen tiles.txt
        "$STALLTRAP" view plain/made.db --size $size --keys "$keys" --screen plain.txt
        python3 - tiles.txt plain.txt <<'PYEND'
import re, sys
tiles, plain = ([line.rstrip("\n") for line in open(f, encoding="utf-8")] for f in sys.argv[1:])
if len(tiles) != len(plain):
    sys.exit("sizes differ")
shades = "│▒▓█"
drawn = bars = 0
for y, (a, b) in enumerate(zip(tiles, plain)):
    a, b = a.ljust(200), b.ljust(200)
    if y < 3 or y > len(tiles) - 5 or re.match(r"[-+>] ", a):
        if y < 3 and a != b:
            sys.exit(f"line {y} differs:\n{a}\n{b}")
        continue
    for x in range(len(b)):
        if b[x] == " " or b[x] == "┊":
            continue
        drawn += 1
        if not any(c not in " ┊" for c in a[max(0, x - 1):x + 2]):
            sys.exit(f"line {y}, column {x}: a call is not drawn:\n{a}\n{b}")
    for m in re.finditer(r"\[[^\[\]│▒▓█ ]{4,}\]", b):
        bars += 1
        if a[m.start():m.end()].strip("[]")[:3] != m.group().strip("[]")[:3]:
            sys.exit(f"line {y}: a bar differs:\n{a}\n{b}")
if not drawn:
    sys.exit("nothing is drawn")
PYEND
        result "$size, keys $keys" $?
    done
done

# Short calls side by side of one function carry its name, behind a cell that shows how many they are.
{ echo "PRAGMA user_version = 4;"; cat "$SOURCE/tracedb/schema.sql"; cat <<'SQLEND'; cat "$SOURCE/tracedb/indexes.sql"; } | sqlite3 alike.db
PRAGMA application_id = 0x73746c74;
INSERT INTO process (id, pid, name) VALUES (1, 1, 'p');
INSERT INTO thread (id, process_id, tid, name) VALUES (1, 1, 1, 't');
INSERT INTO module (id, name, path, kernel) VALUES (1, 'm', 'm', 0);
INSERT INTO symbol VALUES (1, 1, 'alike', 1, 1);
WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 9999)
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) SELECT x + 1, 1, 1, NULL, 0, x * 1000, 900, 900, 0 FROM n;
SQLEND
"$STALLTRAP" view alike.db --size 80x24 --keys 0 --screen alike.txt && grep -q '^[█▓▒│]alike[█▓▒│]' alike.txt
result "the name of short calls stands behind the first of their cells" $?

# What a frame reads: bounded by the screen. The steps of SQLite's machine are too many to count here; bytes read from the file are not.
keys='0wwwwdd<Enter>LLLuuhhllss0<Tab>wwwwwwww/flush<Enter>nnN<Esc>gG]['
"$STALLTRAP" view made.db --size 80x24 --keys "$keys" --frames frames.txt >/dev/null
result "a frame a key" $?
[ "$(wc -l <frames.txt)" -eq 45 ] && ! grep -qv '^[0-9]* [0-9]* .' frames.txt
result "a line a frame" $?
read_bytes() { # DB KEYS
    ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=pread64 -o trace.txt "$STALLTRAP" view "$1" --size 80x24 --keys "$2" --screen screen.txt && awk -F' = ' '{s += $NF} END {print s + 0}' trace.txt
}
tiled=$(read_bytes made.db 0) plain=$(read_bytes plain/made.db 0)
echo "the whole trace is drawn from $tiled bytes; without tiles from $plain"
[ "$tiled" -lt $((plain / 5)) ]
result "the whole trace is drawn from a fifth of its bytes or less" $?

# Searching, neighbours and longest calls find what SQL finds.
selected() { # KEYS: the name and numbers of the selection
    "$STALLTRAP" view made.db --size 100x30 --keys "$1" --screen screen.txt && sed -n '28,29p' screen.txt
}
want=$(sqlite3 made.db "SELECT s.name FROM call c JOIN symbol s ON s.id = c.symbol_id WHERE parent_id = (SELECT min(id) FROM call WHERE thread_id =
    (SELECT thread_id FROM stall)) ORDER BY c.duration_ns DESC LIMIT 1")
selected '0<Tab><S-Tab>L' | grep -q "^$want  ("
result "the longest call of the root is $want" $?
want=$(sqlite3 made.db "SELECT s.name FROM call c JOIN symbol s ON s.id = c.symbol_id WHERE thread_id = 1 AND depth = 1 ORDER BY c.id LIMIT 1 OFFSET 3")
selected '0<Tab><S-Tab>jlll' | grep -q "^$want  ("
result "three calls behind the first of its depth is $want" $?
want=$(sqlite3 made.db "SELECT s.name FROM call c JOIN symbol s ON s.id = c.symbol_id WHERE thread_id = 1 AND s.name LIKE '%copy_page%' ORDER BY c.id LIMIT 1 OFFSET 2")
selected '0<Tab><S-Tab>/copy_page<Enter>nn' | grep -q "^$want  ("
result "the third hit is $want" $?

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 30 ]
