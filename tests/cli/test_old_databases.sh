#!/bin/bash
# A database of each earlier version of the schema (old/schema-N.sql: the dump of one, with tests/golden/viewer/trace.sql as it then was)
# opens in report, query, view and export, and tells the same of one trace; one of a later version is refused with a word on what to do.
set -u
. "$SOURCE/tests/cli/lib.sh"
here=$SOURCE/tests/cli/old

made() { # VERSION FILE DB
    { echo "PRAGMA application_id = 0x73746c74; PRAGMA user_version = $1;"; cat "${@:2:$#-2}"; } | sqlite3 -batch "${@: -1}" >/dev/null || fail "sqlite3 cannot make version $1"
}

# ask NAME DB WORD...: what stalltrap answers, without the database's own name
ask() {
    local name=$1 db=$2
    shift 2
    timeout 60 "$STALLTRAP" "$1" "$db" "${@:2}" >raw 2>err || fail "$1 $db ${*:2} ends with $?" err
    [ -s raw ] || fail "$1 $db ${*:2} prints nothing" err
    [ ! -s err ] || fail "$1 $db ${*:2} complains" err
    sed "s/$db/DB/g" raw >"$name"
}

answers() { # FOLDER DB
    local report format keys
    mkdir "$1"
    ask "$1/why" "$2" report
    for report in "$SOURCE"/viewer/reports/*.sql; do
        report=$(basename "$report" .sql)
        case $report in
        callers | latency | worst) ask "$1/$report" "$2" report "$report" relay ;;
        compare) ask "$1/$report" "$2" report compare "$2" ;;
        *) ask "$1/$report" "$2" report "$report" ;;
        esac
    done
    for format in chrome folded speedscope; do
        ask "$1/$format" "$2" export --to $format
    done
    "$STALLTRAP" export "$2" --to perfetto -o "$1/perfetto" >/dev/null 2>err && [ ! -s err ] || fail "export of $2 to perfetto" err
    ask "$1/query" "$2" query 'SELECT id, tid, kind, start_ns, end_ns, reason FROM stalls; SELECT id, function, start_ns, end_ns, self_ns, flags FROM calls ORDER BY id'
    for keys in 0 '0uuLL' ']][[t' '/relay<Enter>n' ':i<Enter>'; do
        ask "$1/view ${keys//\//_}" "$2" view --keys "$keys"
    done
}

versions=()
# The one of today, too, so that it is there when it becomes old.
now=$(sed -n 's/^#define TDB_VERSION *//p' "$SOURCE/tracedb/tracedb.h")
for ((version = 1; version <= now; version++)); do
    if [ ! -s "$here/schema-$version.sql" ]; then
        [ $version -eq "$now" ] && continue
        fail "there is no database of version $version in $here: what has just become an old version needs one"
    fi
    versions+=($version)
    made $version "$here/schema-$version.sql" "v$version.db"
    answers "v$version" "v$version.db"
done
for version in "${versions[@]}"; do
    for file in v1/why v1/top v1/tree v1/offcpu v1/stalls v1/gaps v1/folded v1/query; do
        cmp -s "$file" "v$version/${file#*/}" || fail "version $version answers ${file#*/} otherwise than version 1: $(diff "$file" "v$version/${file#*/}" | head -n 6)"
    done
done

made $((now + 1)) "$here/schema-1.sql" later.db
timeout 60 "$STALLTRAP" report later.db >out 2>err
[ $? -ne 0 ] && grep -q "schema version $((now + 1)); this stalltrap knows up to version $now" err && grep -q 'decode the snapshot again' err ||
    fail "a later version is not refused" out err
exit 0
