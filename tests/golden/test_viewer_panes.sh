#!/bin/bash
# Lists, SQL, details, mouse, pins, measuring and hostile names: screens after scripted keys against tests/golden/viewer/pane-*.txt;
# then odd sizes and files, and the program in a real terminal (tmux). UPDATE=1 writes what comes out as the new expectation.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'tmux -S "$work/tmux" kill-server 2>/dev/null; rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 TERM=dumb
unset COLUMNS LINES COLORTERM TMUX
cd "$work" || exit 1
passed=0 failed=0

make_db() { # FILE SQL
    { echo "PRAGMA user_version = 2;"; cat "$SOURCE/tracedb/schema.sql" "$2" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 "$1"
}
make_db known.db "$here/known.sql"
# As an older stalltrap wrote it: no source lines, no counts.
cp known.db old.db
sqlite3 old.db 'DROP VIEW calls; DROP VIEW functions; DROP TABLE source; ALTER TABLE call DROP COLUMN instructions; ALTER TABLE call DROP COLUMN cycles'
cp known.db python.db
sqlite3 python.db "INSERT INTO stall_attr VALUES (1, 'runtime', 'Python 3.11.2'), (1, 'frame.0', 'Store.fetch (/srv/store.py:88)'),
    (1, 'frame.1', 'handle (/srv/' || char(27) || '[31mviews.py:31)'), (1, 'frame.10', '<module> (/srv/main.py:12)'), (1, 'waker_frame.0', 'w (/srv/w.py:1)')"
make_db hostile.db "$here/hostile.sql"
make_db empty.db <(echo "PRAGMA application_id = 0x73746c74;")
make_db one.db <(cat <<'SQLEND'
PRAGMA application_id = 0x73746c74;
INSERT INTO process (id, pid, name) VALUES (1, 1, 'p');
INSERT INTO thread (id, process_id, tid, name) VALUES (1, 1, 1, 't');
INSERT INTO module (id, name, path, kernel) VALUES (1, 'm', 'm', 0);
INSERT INTO symbol VALUES (1, 1, 'f', 1, 1);
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES (1, 1, 1, NULL, 0, 5, 0, 0, 3);
SQLEND
)

result() { # WHAT STATUS
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1"
        failed=$((failed + 1))
    fi
}

screen() { # NAME DB SIZE KEYS [OPTION...]
    local name=$1 db=$2 size=$3 keys=$4
    shift 4
    "$STALLTRAP" view "$db" --size "$size" --keys "$keys" --screen - "$@" >out 2>&1
    [ -z "${UPDATE:-}" ] || cp out "$here/pane-$name.txt"
    diff -u "$here/pane-$name.txt" out && ! grep -q $'[\001-\011\013-\037\177]' out
    result "$name" $?
}

screen details known.db 100x30 i
screen details-off known.db 80x24 ii
screen details-python python.db 100x30 i
screen details-source known.db 100x30 'ui'
screen details-outermost known.db 100x30 'uui'
screen details-evil known.db 100x30 '0/script<Enter>i'
screen details-old old.db 100x30 'uui'
screen stalls known.db 80x24 S
screen stall-go known.db 80x24 'Sj<Enter>'
screen functions known.db 80x24 F
screen functions-end known.db 80x18 FG
screen calls known.db 100x30 '/leaf<Enter>c'
screen calls-go known.db 100x30 '/leaf<Enter>cjj<Enter>q'
screen calls-none known.db 80x24 '<Tab><Tab>c'
screen hits known.db 80x24 '/work<Enter>H'
screen hits-none known.db 80x24 H
screen gaps known.db 80x24 x
screen gap-go known.db 80x24 '0wwwwx<Enter>q'
screen marks known.db 80x24 'ej'
screen sql known.db 120x30 ';SELECT id, function, start_ns, duration_ns, thread_id, depth FROM calls WHERE duration_ns > 300000<Enter>'
screen sql-go known.db 120x30 ';SELECT id, function, start_ns, duration_ns, thread_id, depth FROM calls WHERE duration_ns > 300000<Enter>jjj<Enter>'
screen sql-narrow known.db 60x20 ';SELECT * FROM calls<Enter>'
screen sql-error known.db 80x24 ';SELECT nothing<Enter>'
screen sql-write known.db 80x24 ';DELETE FROM call<Enter>'
screen sql-no-place known.db 80x24 ';SELECT 1 AS one, 2 AS two<Enter><Enter>'
screen sql-typing known.db 80x24 ';SELECT 1<Backspace>2'
screen sql-endless known.db 80x10 ';WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a<Enter>'
screen click known.db 100x20 '0<Click:30,6>'
screen click-overview known.db 80x24 'www<Click:70,1>'
screen click-nothing known.db 80x24 '0<Click:70,10>'
screen click-cpu known.db 80x24 '0<Click:70,12>'
screen click-list known.db 80x24 'F<Click:3,15>'
screen double-click known.db 100x20 '0<DoubleClick:30,5>'
screen wheel known.db 80x24 '0<WheelUp:20,5><WheelUp:20,5>'
screen wheel-down known.db 80x24 'www<WheelDown:20,5>'
screen drag known.db 80x24 '0www<Drag:20,0>'
screen drag-down known.db 80x12 '0<Drag:0,-3>'
screen pin known.db 80x24 '0<Tab>p'
screen unpin known.db 80x24 '0<Tab>pp'
screen pin-two known.db 80x24 '0<Tab>p<Tab>p'
screen collapse-others known.db 80x24 '0C'
screen open-others known.db 80x24 '0CC'
screen measure known.db 80x24 '0uujMll'
screen measured known.db 80x24 '0uujMllM'
screen follow known.db 80x24 '0/work<Enter>f'
screen command known.db 80x24 ':functions<Enter>'
screen command-near known.db 80x24 ':function<Enter>'
screen hostile hostile.db 80x24 0
screen hostile-ascii hostile.db 80x24 0 --ascii
screen hostile-narrow hostile.db 23x12 0l
screen hostile-list hostile.db 60x20 F
screen hostile-details hostile.db 80x30 '0li'
screen empty empty.db 60x16 'FSxi;SELECT 1<Enter>qhjkltuLMpCf<Click:3,5><WheelUp:3,5><Drag:2,2>'
screen one-call one.db 60x16 '0lwwwsss<Enter>i'

for size in 1x1 2x1 1x9 3x3 5x4 7x7 13x5 300x4 4x90 40x8 80x16 1000x3; do
    for keys in '' i F 'S<Enter>' ';SELECT 1<Enter>' '?' '0<Click:0,0><Click:5,3><WheelUp:1,1><Drag:-9,-9>' ':zoom-in'; do
        "$STALLTRAP" view known.db --size $size --keys "$keys" --screen - >out 2>err && [ "$(wc -l <out)" -eq "${size#*x}" ]
        result "size $size, keys '$keys'" $?
    done
done

"$STALLTRAP" view known.db --keys ":save-display $work/saved.txt<Enter>" >/dev/null && grep -q 'off-CPU 400 us in read' saved.txt
result "save-display" $?
"$STALLTRAP" view known.db --keys ":save-display /nowhere/x<Enter>" | grep -q 'cannot'
result "save-display to nowhere tells so" $?
mkdir readonly && cp known.db readonly && chmod 500 readonly && chmod 400 readonly/known.db
"$STALLTRAP" view readonly/known.db --keys 'F' >/dev/null && [ -z "$(ls -A readonly | grep -v '^known.db$')" ]
result "a read-only folder, and nothing is written beside the trace" $?
# Another program writes: the viewer waits for the end of a transaction, and shows what is in a database that is never left alone.
cp known.db written.db
/usr/bin/python3 - "$STALLTRAP" <<'PYEND'
import sqlite3, subprocess, sys, threading, time
db = sqlite3.connect("written.db", isolation_level=None, check_same_thread=False)
db.execute("BEGIN EXCLUSIVE")
viewer = subprocess.Popen([sys.argv[1], "view", "written.db", "--keys", "0F"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
time.sleep(0.5)
if viewer.poll() is not None:
    sys.exit(f"did not wait: {viewer.stderr.read()}")
db.execute("COMMIT")
out, err = viewer.communicate(timeout=300)
if viewer.returncode or "functions by own time" not in out:
    sys.exit(f"exit {viewer.returncode}: {err}{out}")
db.execute("PRAGMA journal_mode = WAL")
stop = threading.Event()
def write():
    while not stop.is_set():
        db.execute("INSERT INTO stall_attr VALUES (1, hex(randomblob(8)), 'x')")
writer = threading.Thread(target=write)
writer.start()
try:
    for _ in range(5):
        subprocess.run([sys.argv[1], "view", "written.db", "--keys", "0wwwiFqSqt"], stdout=subprocess.DEVNULL, check=True, timeout=300)
finally:
    stop.set()
    writer.join()
PYEND
result "a database that is being written" $?
head -c 30000 known.db >cut.db
"$STALLTRAP" view cut.db >out 2>err
[ $? -eq 1 ] && grep -q 'malformed\|cannot read' err
result "half a database is an error, not a crash" $?

# As a user has it: 256 colours, a resize storm, and a shell that is as before.
keys_to() { tmux -S tmux send-keys -t 0 "$@"; }
shows() { # PATTERN: within two minutes
    local i
    for ((i = 0; i < 1200; i++)); do
        tmux -S tmux capture-pane -p -t 0 >pane && grep -q "$1" pane && return 0
        sleep 0.1
    done
    echo "no '$1' in:"
    cat pane
    return 1
}
tmux -S tmux -f /dev/null new-session -d -x 100 -y 24 "TERM=tmux-256color '$STALLTRAP' view known.db; echo ended \$?; exec cat"
shows 'selection 450 us'
result "tmux: starts at the stall" $?
keys_to 0
shows 'view 12.0 ms'
result "tmux: 0 shows all" $?
tmux -S tmux capture-pane -p -e -t 0 | grep -q $'\033\\[48;5;'
result "tmux: bars are areas of 256 colours" $?
tmux -S tmux capture-pane -p -t 0 | grep -q '[▏▎▍▌▋▊▉]'
result "tmux: ends to the eighth of a cell" $?
keys_to -l $'\033[M >\047'
keys_to -l $'\033[M#>\047'
shows 'selection 450 us'
result "tmux: a click selects" $?
keys_to -l $'\033[M`>\047'
shows 'view 6.00 ms'
result "tmux: the wheel zooms" $?
keys_to S
shows 'stalls: 2 rows'
result "tmux: S lists the stalls" $?
keys_to Down Enter
shows 'selection 700 us\|view 6.00 ms'
result "tmux: Enter goes there" $?
keys_to q
for i in 60x15 20x5 200x50 5x3 90x20; do
    tmux -S tmux resize-window -t 0 -x "${i%x*}" -y "${i#*x}"
done
shows 'k.*db.*trigger\|known.db'
result "tmux: a resize storm" $?
keys_to F1
shows 'Keys (each also'
result "tmux: F1 helps" $?
keys_to x q
shows 'ended 0'
result "tmux: q ends, and the shell is there" $?

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 150 ]
