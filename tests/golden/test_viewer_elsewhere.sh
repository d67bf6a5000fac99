#!/bin/bash
# A trace in other people's hands: the README's queries in sqlite3's shell and in Python give the same, its lines load the traces of two
# hosts into PostgreSQL (a cluster of its own in a scratch folder), and Debian's flamegraph.pl draws the folded stacks.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
export LC_ALL=C.UTF-8
unset PGHOST PGPORT PGDATABASE PGUSER PGDATA
postgres=
cleanup() {
    [ -z "$postgres" ] || as_postgres "$pg/pg_ctl" -D "$work/pg/data" -m immediate stop >/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1
passed=0 failed=0

expect() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        failed=$((failed + 1))
    fi
}

same_rows() { # CSV CSV: whatever is quoted
    /usr/bin/python3 -c 'import csv, sys
a, b = (list(csv.reader(open(f))) for f in sys.argv[1:])
sys.exit(a != b and f"{a}\n{b}")' "$@"
}

make_db() { # FILE SQL
    { echo "PRAGMA user_version = 2;"; cat "$SOURCE/tracedb/schema.sql" "$2" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 "$1"
}
make_db known.db "$here/known.sql"
make_db hostile.db "$here/hostile.sql"

# The README's queries, of a function that this trace has; a file each.
/usr/bin/python3 - "$SOURCE/README.md" <<'PYEND' || exit 1
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
block = re.search(r"^Questions people ask of a trace:\n\n((?:    .*\n|\n)+)", text, re.M)[1]
queries = [q for q in re.split(r";\n", re.sub(r"^ *--.*\n", "", block, flags=re.M)) if q.strip()]
for i, query in enumerate(queries):
    open(f"{i}.sql", "w").write(query.replace("'pump'", "'work'").strip() + ";\n")
postgres = re.search(r"^    psql <<'END'\n((?:    .*\n)+?)    END$", text, re.M)[1]
open("postgres.sql", "w").write(re.sub("^    ", "", postgres, flags=re.M))
csv = re.search(r"^    for host in web1 web2; do .*$", text, re.M)[0]
open("csv.sh", "w").write(csv.strip() + "\n")
PYEND
expect "the README has three queries" [ "$(ls [0-9].sql | wc -l)" -eq 3 ]
for query in [0-9].sql; do
    "$STALLTRAP" query known.db - --format csv <"$query" | tail -n +2 >ours.csv
    expect "$query has an answer" [ -s ours.csv ]
    sqlite3 -csv known.db <"$query" >shell.csv
    expect "$query in sqlite3's shell" same_rows ours.csv shell.csv
    /usr/bin/python3 - known.db "$query" >python.csv <<'PYEND'
import csv, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(open(sys.argv[2]).read().rstrip().rstrip(";"))
csv.writer(sys.stdout, lineterminator="\n").writerows(["" if v is None else v for v in row] for row in rows)
PYEND
    expect "$query in Python" same_rows ours.csv python.csv
done

# PostgreSQL refuses root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        runuser -u postgres -- env LC_ALL=C.UTF-8 "$@"
    else
        "$@"
    fi
}
pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
mkdir pg
cp known.db web1.db
cp hostile.db web2.db
(PATH=$(dirname "$STALLTRAP"):$PATH sh csv.sh) || exit 1
expect "a CSV of each host" [ "$(cat web1.csv web2.csv | wc -l)" -gt 30 ]
cp web1.csv web2.csv postgres.sql pg
chmod 755 . && chmod -R a+rX pg
[ "$(id -u)" != 0 ] || chown -R postgres pg
cd pg || exit 1
as_postgres "$pg/initdb" -D "$work/pg/data" -A trust -E UTF8 >initdb.log 2>&1 || { cat initdb.log; exit 1; }
as_postgres "$pg/pg_ctl" -D "$work/pg/data" -w -t 60 -l "$work/pg/log" -o "-c listen_addresses='' -c unix_socket_directories=$work/pg -c fsync=off" start >/dev/null ||
    { cat log; exit 1; }
postgres=1
as_postgres "$pg/psql" -h "$work/pg" -d postgres -v ON_ERROR_STOP=1 -q -A -t -F , -f postgres.sql >../postgres.csv 2>../postgres.err
expect "the README's lines run in PostgreSQL" [ $? -eq 0 ]
cat ../postgres.err
as_postgres "$pg/psql" -h "$work/pg" -d postgres -A -t -c "SELECT count(*) FROM calls" >../count
cd "$work" || exit 1
expect "all calls of both hosts are there" [ "$(cat count)" -eq $(($(sqlite3 web1.db 'SELECT count(*) FROM call') + $(sqlite3 web2.db 'SELECT count(*) FROM call'))) ]
sqlite3 -csv web1.db "ATTACH 'web2.db' AS b; SELECT 'web1', s.name, count(*), max(duration_ns) FROM call c JOIN symbol s ON s.id = c.symbol_id GROUP BY 2
    ORDER BY 4 DESC, 1, 2" | tr -d '\r"' | head -3 >want
expect "and PostgreSQL answers what SQLite does" diff <(head -3 postgres.csv) want

# Debian's copy of flamegraph.pl, and what it drew: a box a call path, its width the time.
flamegraph=/usr/share/perl5/Devel/NYTProf/flamegraph.pl
"$STALLTRAP" export known.db --to folded -o known.folded
expect "flamegraph.pl draws the folded stacks" sh -c 'perl "$0" --countname ns known.folded >flames.svg 2>flames.err && ! grep -i "ignored\|error" flames.err' "$flamegraph"
expect "the picture is one" /usr/bin/python3 - flames.svg known.folded <<'PYEND'
import re, sys, xml.etree.ElementTree
titles = [t.text for t in xml.etree.ElementTree.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}title")]
lines = [re.fullmatch(r"(.+) (\d+)\n", line).groups() for line in open(sys.argv[2], encoding="utf-8")]
total = sum(int(ns) for _, ns in lines)
assert any(re.match(rf"all \({total:,} ns, 100%\)", t) for t in titles), titles
work = sum(int(ns) for stack, ns in lines if re.match(r"main 100;main;work(;|$)", stack))
assert any(t.startswith(f"work ({work:,} ns") for t in titles), (work, titles)
PYEND

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -ge 15 ]
