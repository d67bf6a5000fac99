#!/bin/bash
# query, report and view on what is no trace database, or one made to harm them: a clear message and the right exit status, nothing
# written, nothing unprintable, no endless loop. What query prints is what the database holds.
set -u
. "$SOURCE/tests/cli/lib.sh"

make_db() { # FILE [SQL-FILE]
    { echo "PRAGMA application_id = 0x73746c74; PRAGMA user_version = 1;"; cat "$SOURCE/tracedb/schema.sql" "${@:2}" "$SOURCE/tracedb/indexes.sql"; } |
        sqlite3 -batch "$1" >/dev/null || fail "sqlite3 cannot make $1"
}

# try STATUS MESSAGE ARG...: stalltrap ends so, with the message on stderr and nothing on stdout
try() {
    local expected=$1 message=$2 status
    shift 2
    timeout 600 "$STALLTRAP" "$@" >out 2>err
    status=$?
    [ $status -eq "$expected" ] || fail "$* ends with $status, expected $expected" out err
    grep -qF -e "$message" err || fail "$*: no message '$message'" out err
    [ ! -s out ] || fail "$*: it prints something" out
}

make_db good.db "$SOURCE/tests/golden/viewer/trace.sql"
make_db hostile.db
python3 "$SOURCE/tests/cli/hostile_db.py" hostile.db call_time || fail "no hostile database"
make_db astray.db # its table of times leads nowhere
python3 "$SOURCE/tests/cli/hostile_db.py" astray.db || fail "no hostile database"
: >empty.db
echo "not a database, but long enough to be read as one" >text.db
head -c 6000 good.db >cut.db
sqlite3 other.db 'CREATE TABLE x(y)'
cp good.db newer.db && sqlite3 newer.db 'PRAGMA user_version = 99'
cp good.db older.db && sqlite3 older.db 'PRAGMA user_version = 0'
make_db lacking.db && sqlite3 lacking.db 'DROP VIEW calls; DROP TABLE call'
mkdir folder.db
mkfifo pipe
chmod 444 good.db
state() { ls -A | grep -vxE 'before|after|out|err|differences' && sha256sum ./*[a-z].db 2>/dev/null; }
state >before

for command in query report view export; do
    sql=()
    [ $command = export ] && sql=(--to chrome)
    [ $command = query ] && sql=("SELECT * FROM calls")
    on() { try "$1" "$2" $command "$3" "${sql[@]}"; }
    on 1 "cannot open 'missing.db': No such file" missing.db
    [ $command = report ] || on 1 "cannot open 'folder.db': Is a directory" folder.db
    [ $command != report ] || on 1 "'folder.db' holds no trace databases" folder.db
    on 1 "'pipe' is no regular file" pipe
    on 1 "'/dev/zero' is no regular file" /dev/zero
    on 1 "'empty.db' is empty" empty.db
    on 1 "'text.db' is not a trace database" text.db
    on 1 "'other.db' is an SQLite database, but not a trace database" other.db
    on 1 "'newer.db' has schema version 99; this stalltrap knows up to version" newer.db
    on 1 "'older.db' has schema version 0" older.db
    on 1 "malformed" cut.db
    on 1 "no such table: " lacking.db
    try 2 "which trace database?" $command
    try 2 "'--no-such'" $command good.db --no-such
    timeout 600 "$STALLTRAP" $command good.db "${sql[@]}" >/dev/full 2>err && fail "$command: a full disk is no failure"
    grep -q 'No space left on device' err || fail "$command: no message about the full disk" err
done
try 1 "No such file" view good.db --screen no/such/folder/file

try 2 "which SQL?" query good.db
try 2 "which SQL?" query good.db ''
try 2 "which SQL?" query good.db ' ; -- nothing'
try 2 "unknown format 'jsn'" query good.db 'SELECT 1' --format jsn
grep -q "did you mean 'json'" err || fail "no nearest format" err
try 1 "SQL: no such column: nope" query good.db 'SELECT nope'
grep -qx '         \^' err || fail "the place is not shown" err
try 1 "SQL: near \"calls\": syntax error" query good.db $'SELECT function\nFORM calls'
try 1 "SQL: no such column: nope" query good.db $'SELECT \'\u00e9\u6f22\e[m\', nope'
diff -u <(printf '  %s\n' "SELECT '"$'\u00e9\u6f22'"\\x1b[m', nope" '                    ^') <(tail -n 2 err) || fail "the caret is elsewhere"
for write in "DELETE FROM call" "CREATE TABLE t(x)" "CREATE TEMP TABLE t(x)" "UPDATE meta SET value = 1" "PRAGMA user_version = 7" \
    "PRAGMA journal_mode = WAL" "VACUUM" "VACUUM INTO 'copy.db'" "DROP VIEW calls" "INSERT INTO meta VALUES('a', 1)"; do
    try 1 "read-only" query good.db "$write"
done
try 1 "not authorized" query good.db "ATTACH 'new.db' AS new"
try 1 "not authorized" query good.db "SELECT load_extension('x')"
try 1 "the query was interrupted" query good.db 'WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a' --timeout 50ms
[ "$(echo 'SELECT count(*) AS n FROM threads' | "$STALLTRAP" query good.db - --format csv)" = $'n\n2' ] || fail "SQL from standard input"

python3 "$SOURCE/tests/cli/check_formats.py" "$STALLTRAP" astray.db >differences || fail "the formats are wrong" differences

# Nothing ends by a signal, runs for ever or lets a control character through.
harmless() { # ARG...
    timeout 600 "$STALLTRAP" "$@" >out 2>err </dev/null || fail "$* ends with $?" err
    [ -s out ] || fail "$* prints nothing"
    LC_ALL=C grep -q $'[\001-\011\013-\037\177]' out err && fail "$*: control characters come out" out err
    grep -qaE $'\u202e|\u2066|\u2028|\u009b' out && fail "$*: text that deceives comes out" out
}
for report in why "$SOURCE"/viewer/reports/*.sql; do
    report=$(basename "$report" .sql)
    operand=()
    case $report in callers | latency | worst) operand=('*') ;; compare) operand=(good.db) ;; esac
    harmless report hostile.db "$report" "${operand[@]}"
    [ "$report" = why ] || harmless report hostile.db "$report" "${operand[@]}" --format json
done
for format in chrome folded speedscope svg html; do
    harmless export hostile.db --to $format
done
for command in report view 'view --keys ]][[t/a<Enter>nNkkjjll' 'export --to chrome'; do
    # shellcheck disable=SC2086
    harmless ${command%% *} astray.db ${command#"${command%% *}"}
done
timeout 600 "$STALLTRAP" export hostile.db --to perfetto -o hostile.pftrace || fail "export to perfetto ends with $?"
rm hostile.pftrace
"$STALLTRAP" view good.db --keys ";ATTACH 'new.db' AS n<Enter>;SELECT load_extension('x')<Enter>;DELETE FROM call<Enter>" >out || fail "SQL in view ends with $?"
for id in $(sqlite3 hostile.db 'SELECT id FROM stall'); do
    harmless report hostile.db --stall "$id"
done
for keys in '' '0wwwwdd' 'LLLuu' '/x<Enter>nN' ']][[t' 'gGt<Tab>K' ":i<Enter>maa'a" '0kkkjjjlll<Enter>wwss<Esc>' '<Space>?' 'liFjj<Enter>q' 'Sj<Enter>xj<Enter>ej<Enter>' '/a<Enter>HGcG<Enter>' '0<Click:20,5><DoubleClick:40,6><WheelUp:10,4><Drag:5,-3>' 'pCfMlM'; do
    harmless view hostile.db --keys "$keys"
    harmless view hostile.db --keys "$keys" --size 200x50 --ascii
done

state >after
diff before after || fail "a file was changed, or one more is there"
