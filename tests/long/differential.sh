#!/bin/bash
# Real programs, stepped from their first to their last instruction, decoded by the fast walk, by libipt's query decoder (--reference)
# and by perf: same branches, counts and calls, no error. Takes minutes a program: run by hand.
# usage: differential.sh [git|sqlite3|python3|gcc|node]...   (git and sqlite3 if none is named)   BUILD is the build folder
set -u
BUILD=$(realpath "${BUILD:-build}")
SOURCE=$(realpath "$(dirname "$0")/../..")
STALLTRAP=$BUILD/stalltrap
export BUILD SOURCE STALLTRAP
# shellcheck source=tests/cli/lib.sh
. "$SOURCE/tests/cli/lib.sh"

command_of() { # NAME: into the array command
    case $1 in
    git) command=(/usr/bin/git --version) ;;
    sqlite3) command=(sqlite3 :memory: 'CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (3, 4), (5, 6); SELECT a, sum(b) FROM t GROUP BY a ORDER BY b DESC') ;;
    python3) command=(/usr/bin/python3 -I -S -c 'print(sum(i * i for i in range(100)))') ;;
    gcc)
        echo 'int main(void) { return 0; }' >small.c
        command=("$(gcc -print-prog-name=cc1)" -quiet -fsyntax-only small.c)
        ;;
    node) command=(node --jitless --single-threaded -e 'console.log(1)') ;;
    *) fail "no program '$1'" ;;
    esac
}

check() { # NAME
    local name=$1 command n
    command_of "$name"
    env -i PATH="$PATH" LC_ALL=C "$STALLTRAP" arm --quiet --source step --ring 512M -o "$name" -- "${command[@]}" >arm.out 2>arm.err || fail "$name: arm ends with $?" arm.err
    "$STALLTRAP" decode --dump branches "$name.1.data" | sha256sum >fast.sum
    "$STALLTRAP" decode --reference --dump branches "$name.1.data" | tee >(wc -l >lines) | sha256sum >slow.sum
    cmp fast.sum slow.sum || fail "$name: the fast walk's branches are not libipt's"
    "$STALLTRAP" decode --stats "$name.1.data" | jq -S 'del(.seconds, .slow)' >fast.stats
    "$STALLTRAP" decode --reference --stats "$name.1.data" | jq -S 'del(.seconds, .slow)' >slow.stats
    diff fast.stats slow.stats || fail "$name: the counts differ"
    n=$(jq .instructions fast.stats)
    [ "$(jq '.errors + .gaps' fast.stats)" = 0 ] || fail "$name: errors or gaps" fast.stats
    "$STALLTRAP" decode --dump calls "$name.1.data" >dump.calls
    perf_calls "$name.1.data"
    python3 "$SOURCE/tests/golden/normalize_calls.py" dump perf.calls dump.calls || fail "$name: perf and decode --dump calls differ"
    python3 "$SOURCE/tests/golden/normalize_calls.py" rows perf.calls "$name.1.db" || fail "$name: perf and the database differ"
    bash "$SOURCE/tests/golden/check_db.sh" "$name.1.db" || fail "$name: the database breaks a rule"
    echo "$name: $n instructions, $(cat lines) branches, $(jq .calls fast.stats) calls: the same to all"
    rm -f "$name".*
}

[ $# -gt 0 ] || set -- git sqlite3
for name; do
    check "$name"
done
