#!/bin/bash
# The database of a real recording: sound, the same each time it is made, and every view is valid JSON with the columns that are
# promised. Hostile names (a program whose name holds escape sequences) come out harmless.
set -u
. "$SOURCE/tests/cli/lib.sh"

start_forwarder --stall lock:40:100 --load-connections 2 --load-rate 1000000
start_arm --source step -p $forwarder --on 'offcpu>20ms' -o x
kill -USR1 $forwarder
end_of $arm 600 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
kill -TERM $forwarder
bash "$SOURCE/tests/golden/check_db.sh" x.1.db || fail "the database breaks a rule"

check_view() { # NAME COLUMN...
    local view=$1
    shift
    "$STALLTRAP" query x.1.db "SELECT * FROM $view" --format json >"$view.json" || fail "query of $view ends with $?"
    python3 - "$view.json" "$(sqlite3 x.1.db "SELECT count(*) FROM $view")" "$@" <<'END' || fail "the JSON of $view is wrong"
import json, sys
rows = json.load(open(sys.argv[1], encoding="utf-8"))
if len(rows) != int(sys.argv[2]):
    sys.exit(f"{len(rows)} rows, expected {sys.argv[2]}")
for row in rows:
    if list(row) != sys.argv[3:]:
        sys.exit(f"columns {list(row)}")
END
    [ "$(stat -c %s "$view.json")" -gt 20 ] || fail "$view is empty"
}
check_view calls id thread_id tid thread function module depth parent_id start_ns end_ns duration_ns self_ns kernel flags instructions cycles source
check_view threads id pid tid name process calls start_ns end_ns
check_view functions function module kernel calls total_ns self_ns min_ns max_ns source
check_view stalls id trigger thread_id tid thread kind start_ns end_ns duration_ns threshold_ns state syscall waker reason
check_view gaps id thread_id cpu start_ns end_ns reason detail
[ "$(sql x.1.db "SELECT count(*) FROM stalls JOIN meta ON key = 'trigger_stall_id' AND value = id")" = 1 ] || fail "no stall is the one that fired"
[ "$(sql x.1.db 'PRAGMA user_version')" -ge 1 ] || fail "no schema version"
[ "$(sql x.1.db 'SELECT count(*) FROM calls WHERE start_ns IS NULL OR end_ns IS NULL')" = 0 ] || fail "a call without a time"
[ "$(sql x.1.db 'SELECT min(start_ns) >= 0 FROM (SELECT start_ns FROM calls UNION ALL SELECT start_ns FROM stalls UNION ALL SELECT start_ns FROM gaps)')" = 1 ] ||
    fail "times before 0"

content() { # DB: everything but when and how fast it was made
    sqlite3 -readonly "$1" .dump | grep -v "INSERT INTO meta VALUES('decode"
}
for n in 1 2; do
    "$STALLTRAP" decode x.1.data -o again.$n.db >/dev/null || fail "decode ends with $?"
    content again.$n.db >again.$n.sql
done
content x.1.db >first.sql
cmp again.1.sql again.2.sql || fail "decoded twice, the databases differ"
cmp first.sql again.1.sql || fail "arm's database is not that of decode"

"$STALLTRAP" decode --bare x.1.data -o bare.db >/dev/null || fail "decode --bare ends with $?"
bash "$SOURCE/tests/golden/check_db.sh" bare.db || fail "the bare database breaks a rule"
[ "$(sql bare.db "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'call'")" = 0 ] || fail "a bare database has indexes"
[ "$(sql bare.db 'SELECT count(*) FROM tile')" = 0 ] || fail "a bare database has tiles"
[ "$(sql bare.db 'SELECT count(*) FROM source')" = 0 ] || fail "a bare database has source lines"
[ "$(sql bare.db 'SELECT count(*) FROM function_summary')" = 0 ] || fail "a bare database counts functions"
for db in bare x.1; do
    sql $db.db 'SELECT * FROM call ORDER BY id' >$db.calls
    "$STALLTRAP" view $db.db >$db.text || fail "view of $db ends with $?"
done
cmp bare.calls x.1.calls || fail "a bare database has other calls"
[ "$(stat -c %s bare.db)" -lt "$(stat -c %s x.1.db)" ] || fail "a bare database is not smaller"

"$STALLTRAP" decode --memory 1K x.1.data -o little.db >/dev/null || fail "decode --memory ends with $?"
content little.db | cmp first.sql - || fail "with little memory the database is another"
# KiB that a file may have, in place of the disk's room. The signal of that limit would end the program; it must not.
for size in 0 32; do
    (ulimit -f $size && "$STALLTRAP" decode --memory 1K x.1.data -o full.db 2>&1) | cat >full.err
    [ "${PIPESTATUS[0]}" = 1 ] || fail "without room for files of $size KiB decode ends with $?" full.err
    grep -q "^stalltrap decode: cannot write" full.err || fail "why nothing was written is not said" full.err
    [ -z "$(find . -name 'full.db' -o -name '.*full*' -o -name '.stalltrap*')" ] || fail "something is left behind"
done

hostile=$'a\e[31m\a\rb'
cp "$(type -P true)" "$hostile"
"$STALLTRAP" arm --source step -o h -- "./$hostile" >h.out 2>h.err || fail "arm of a hostile name ends with $?" h.err
"$STALLTRAP" decode h.1.data --dump calls >h.dump || fail "decode --dump ends with $?"
"$STALLTRAP" report h.1.db >h.report || fail "report ends with $?"
"$STALLTRAP" view h.1.db >h.view || fail "view ends with $?"
"$STALLTRAP" query h.1.db 'SELECT DISTINCT thread, module FROM calls' >h.query || fail "query ends with $?"
[ "$(sqlite3 h.1.db "SELECT count(*) FROM module WHERE name = CAST('$hostile' AS TEXT)")" = 1 ] || fail "the module's name is not in the database as it is"
for file in h.out h.err h.dump h.report h.view h.query; do
    [ -s $file ] || [ $file = h.report ] || fail "$file is empty"
    LC_ALL=C grep -q $'[\001-\011\013-\037\177]' $file && fail "$file holds control characters" "$file"
done
exit 0
