#!/bin/bash
# In a locale that writes numbers another way, every command says what it says in C.UTF-8: what one command prints, another one, a script and the
# manual can be asked about.
set -u
. "$SOURCE/tests/cli/lib.sh"
localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>err || { echo "skipped: no de_DE to make a locale of (locales)"; exit 77; }
german() { LOCPATH=$work LC_ALL=de_DE.UTF-8 "$@"; }
german env printf '%.1f\n' 1,5 >out 2>err
grep -qx '1,5' out || fail "the locale is not German" out err

{ echo "PRAGMA user_version = 2;"; cat "$SOURCE/tracedb/schema.sql" "$SOURCE/tests/golden/viewer/known.sql" "$SOURCE/tracedb/indexes.sql"; } |
    sqlite3 known.db >/dev/null || fail "no database"
cc -O0 -static -x c - -o tiny <<<'int f(int i) { return i + 1; } int main(int n, char **v) { (void)v; return f(n) - 2; }' || fail "cc"
"$STALLTRAP" arm --source step -q -o x -- ./tiny >out 2>err || fail "arm ends with $?" err

same() { # NAME WORD...
    local name=$1
    shift
    "$STALLTRAP" "$@" >plain 2>&1 </dev/null
    local status=$?
    german "$STALLTRAP" "$@" >other 2>&1 </dev/null
    [ $? = $status ] || fail "$name ends otherwise in German" plain other
    # Not the same twice: how long decoding took, how many context switches doctor counted.
    sed -i -E 's/("seconds": [0-9]+\.)[0-9]+/\1/; /context switches/s/ [0-9]+ (traced|that)/ N \1/g' plain other
    [ -s plain ] || fail "$name says nothing"
    diff plain other >differences || fail "$name: in C.UTF-8 (<) and in German (>)" differences
}
for keys in 0 t '0uuLL' ':zoom-out<Enter>' ';SELECT 1.5 AS x, duration(1500000) AS y<Enter>' i '/leaf<Enter>nM' F S x; do
    same "view --keys $keys" view known.db --screen - --size 100x30 --keys "$keys"
done
for report in top tree offcpu stalls gaps; do same "report $report" report known.db $report; done
same report report known.db
same query query known.db 'SELECT 1.5, duration(1234567), percentile(duration_ns, 99.9) FROM calls'
for format in chrome folded speedscope svg html; do same "export $format" export known.db --to $format; done
same 'decode --dump' decode x.1.data --dump calls
same 'decode --stats' decode x.1.data --stats
same 'a duration' arm -p $$ --on 'offcpu>1,5ms'
same doctor doctor
if [ "$(id -u)" = 0 ]; then
    german "$STALLTRAP" watch --on 'offcpu>1.5ms,idle=yes' -- sleep 0.01 >out 2>err || fail "watch ends with $?" err
    ! grep -E '[0-9],[0-9]{1,2}( |$)' out || fail "watch counts in German" out
fi
