#!/bin/bash
# The working folder, the folder for temporary files and the program have spaces, quotes and letters that are none in their names, 500 bytes of
# them, and every command works on what is there.
set -u
. "$SOURCE/tests/cli/lib.sh"
# 250 bytes each, as much as a file system takes in a piece, nearly; the escape sequence would clear a terminal.
long=$(printf 'a %.0s' $(seq 60))
first="my \"folder's\" \$HOME; % & ü $long" second=$'\033[2J'"-\\n $long$long"
first=${first:0:200} second=${second:0:249}
far="$work/$first/$second/$second"
mkdir -p "$far" || fail "no such folder"
mkdir "$far/t m p"
export TMPDIR="$far/t m p"
cd "$far" || exit 1
[ "${#far}" -gt 500 ] || fail "${#far} bytes only"
cp "$programs/kinds" "the kinds" || fail "cp"

works() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >out 2>err </dev/null || fail "$name ends with $?" out err
    [ -s out ] || fail "$name says nothing" err
    ! grep -q $'\033\\[2J' out err || fail "$name tells a terminal to clear itself" out
}
cc -g -O0 -static -x c - -o "a program" <<<'int f(int i) { return i + 1; } int main(int n, char **v) { (void)v; return f(n) - 2; }' || fail "cc"
works "arm" "$STALLTRAP" arm --source step -o "a trace" -- "./a program"
[ "$(sql "a trace.1.db" "SELECT count(*) FROM calls WHERE function = 'f'")" = 1 ] || fail "no call of f()"
works "decode" "$STALLTRAP" decode --force "a trace.1.data"
works "decode to a path" "$STALLTRAP" decode "$far/a trace.1.data" -o "$far/an other.db"
works "report" "$STALLTRAP" report "a trace.1.db" top
works "report of a folder" "$STALLTRAP" report "$far"
works "compare" "$STALLTRAP" report "a trace.1.db" compare "an other.db"
works "view" "$STALLTRAP" view "an other.db" --screen - --size 100x24
works "query" "$STALLTRAP" query "$far/an other.db" 'SELECT count(*) FROM calls'
for format in perfetto chrome folded speedscope svg html; do
    "$STALLTRAP" export "an other.db" --to $format -o "the $format" >out 2>err || fail "export --to $format ends with $?" err
    [ -s "the $format" ] || fail "export --to $format writes nothing"
done
if [ "$(id -u)" = 0 ]; then
    start "./the kinds" sleep >noted
    quoted="$far/the kinds"
    quoted=${quoted//\\/\\\\}
    quoted=${quoted//\"/\\\"}
    works "arm with a trigger" "$STALLTRAP" arm --source sample -p "$pid" --on "func:\"$quoted\"!slow_function>30ms" --timeout 100s -o "a stall" \
        --then snapshot --then 'cp "$STALLTRAP_DB" "the same.db"'
    works "report of the stall" "$STALLTRAP" report "the same.db"
    [ "$(sql "a stall.1.db" "SELECT count(*) > 0 FROM calls WHERE function = 'slow_function'")" = 1 ] || fail "the sampled functions have no names"
fi
left=$(ls -A "$TMPDIR")
[ -z "$left" ] || fail "left in TMPDIR: $left"
exit 0
