#!/bin/bash
# decode --inlined: the calls of functions that were inlined are those that the program itself logs when nothing is; without
# debug information, or with damaged one, the rows are those of decode without it.
set -u
. "$SOURCE/tests/cli/lib.sh"
program=$programs/inlined
everything='SELECT thread_id, function, module, depth, parent_id, start_ns, end_ns, self_ns, kernel, flags FROM calls ORDER BY id'
seen="SELECT thread_id, function, start_ns, end_ns, flags FROM calls WHERE NOT flags & 8 ORDER BY id"

decoded() { # NAME OPTION...: NAME.db and NAME.err
    local name=$1
    shift
    timeout 600 "$STALLTRAP" decode x.1.data -o "$name.db" --force "$@" >decode.out 2>"$name.err" || fail "decode $* ends with $?" "$name.err"
}

tree() { # DB: the tree of the program's functions
    {
        echo "CREATE TEMP TABLE own(function PRIMARY KEY); CREATE TEMP TABLE own_module(module PRIMARY KEY);"
        echo "INSERT INTO own_module VALUES('inlined');"
        sed 's/ x[0-9]*$//' "$known_trees/inlined.tree" | awk 'NR > 1 { print $1 }' | sort -u | sed "s/.*/INSERT INTO own VALUES('&');/"
        cat "$SOURCE/tests/golden/tree.sql"
    } | sqlite3 -readonly "$1"
}

env -i PATH="$PATH" LC_ALL=C "$STALLTRAP" arm --source step --ring 16M -o x -- "$program" >arm.out 2>arm.err || fail "arm ends with $?" arm.err
[ "$(sql x.1.db "SELECT count(*) FROM calls WHERE flags & 8")" = 0 ] || fail "calls are inlined though nobody asked"

# The true tree, from the program that logs its calls.
TREE_LOG=$work/log "$programs/instrumented/inlined" >/dev/null || fail "the logging program ends with $?"
"$programs/treecheck" log log >logged.tree || fail "no tree in the log"
decoded inlined --inlined
tree inlined.db >found.tree || fail "no tree"
"$programs/treecheck" --tails nested compare logged.tree found.tree || fail "the tree is not the one that the program logs" found.tree
! grep 'no DWARF: .*inlined' inlined.err || fail "debug information was not found" inlined.err
bash "$SOURCE/tests/golden/check_db.sh" inlined.db || fail "the database breaks a rule"
python3 "$SOURCE/tests/golden/check_schema.py" "$SOURCE" inlined.db || fail "the database holds what docs/schema.md does not tell of"

# What is inlined has the flag, the file and line of its declaration, and lies within a function of the program.
[ "$(sql inlined.db "SELECT DISTINCT flags & 8 FROM calls WHERE function IN ('innermost', 'middle', 'outer', 'calling', 'checked', 'has_loop', 'deeper', 'leave')")" = 8 ] || fail "no flag"
[ "$(sql inlined.db "SELECT count(*) FROM calls WHERE flags & 8 AND function IN ('leaf', 'complain', 'main')")" = 0 ] || fail "a flag too many"
line=$(grep -n '^IN_LINE int innermost' "$known_trees/inlined.c" | cut -d: -f1)
[ "$(sql inlined.db "SELECT DISTINCT source FROM calls WHERE function = 'innermost'")" = "$known_trees/inlined.c:$line" ] || fail "the source is another"
[ "$(sql inlined.db "SELECT count(*) FROM calls c JOIN calls p ON p.id = c.parent_id WHERE c.function = 'leaf' AND p.function = 'calling' AND p.flags & 8")" = 2 ] || fail "calls out of what is inlined are not its children"
[ "$(sql inlined.db "$seen")" = "$(sql x.1.db "$seen")" ] || fail "other calls than the inlined ones are not what they were"
"$STALLTRAP" export inlined.db --to folded -o folded.txt >/dev/null 2>&1 || fail "export fails"
grep -q ';two_places;outer_\[i\];middle_\[i\];innermost_\[i\] ' folded.txt || fail "export does not mark what is inlined" folded.txt
"$STALLTRAP" report inlined.db top --limit 1000 >top.txt 2>&1 && grep -q innermost top.txt || fail "report top does not list it" top.txt

# Both walks, and with one thread.
for option in --reference --threads=1; do
    decoded other --inlined $option
    [ "$(sql other.db "$everything")" = "$(sql inlined.db "$everything")" ] || fail "$option tells other calls"
done

# Without debug information: the rows of before, and a word about it.
mkdir -p "fs$(dirname "$program")"
stripped=fs$program
objcopy --strip-debug "$program" "$stripped" || fail "objcopy"
decoded stripped --inlined --symfs fs
grep -q 'no DWARF: .*inlined' stripped.err || fail "no word about missing debug information" stripped.err
[ "$(sql stripped.db "SELECT value FROM meta WHERE key = 'no_dwarf'" | grep -c '^inlined$')" = 1 ] || fail "meta.no_dwarf does not tell"
[ "$(sql stripped.db "$everything")" = "$(sql x.1.db "$everything")" ] || fail "without debug information the rows are others"

# Damaged: never an error, and what is not inlined stays.
for seed in 1 2 4 6; do
    python3 - "$program" "$stripped" $seed <<'EOF' || fail "the damaging"
import random, subprocess, sys
source, target, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = bytearray(open(source, "rb").read())
rng = random.Random(seed)
for line in subprocess.run(["readelf", "-SW", source], capture_output=True, text=True).stdout.splitlines():
    words = line.replace("[ ", "[").split()
    if len(words) > 5 and words[1] in (".debug_info", ".debug_abbrev", ".debug_rnglists", ".debug_ranges", ".debug_str"):
        offset, size = int(words[4], 16), int(words[5], 16)
        for _ in range(max(1, size // (40 << seed // 2))):
            data[offset + rng.randrange(size)] = rng.randrange(256)
open(target, "wb").write(data)
EOF
    decoded damaged --inlined --symfs fs
    [ "$(sql damaged.db "$seen")" = "$(sql x.1.db "$seen")" ] || fail "damaged debug information (seed $seed) changes other calls"
    bash "$SOURCE/tests/golden/check_db.sh" damaged.db || fail "damaged debug information (seed $seed): the database breaks a rule"
done

# It says what it goes with.
"$STALLTRAP" decode x.1.data --inlined --stats >out 2>&1
[ $? -eq 2 ] && grep -q 'needs a database' out || fail "--inlined --stats" out
"$STALLTRAP" decode x.1.data --inlined --dump calls >out 2>&1
[ $? -eq 2 ] && grep -q 'needs a database' out || fail "--inlined --dump" out
exit 0
