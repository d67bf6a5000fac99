#!/bin/bash
# Programs whose code a compiler makes while they run, stepped for a while in the middle of their lives: a JVM that told its names by
# jcmd Compiler.perfmap, and node --perf-prof, which writes a jitdump. Their threads and functions have names, the calls are the known
# ones, and both walks, perf and libipt's instruction decoder find the same branches.
# usage: jit.sh [java|node]...    BUILD is the build folder. Needs openjdk-17-jdk-headless and nodejs.
set -u
BUILD=$(realpath "${BUILD:-build}")
SOURCE=$(realpath "$(dirname "$0")/../..")
STALLTRAP=$BUILD/stalltrap
export BUILD SOURCE STALLTRAP
# shellcheck source=tests/cli/lib.sh
. "$SOURCE/tests/cli/lib.sh"

# How often who called whom among the known functions, in one thread: "CALLS CALLER CALLED". At the ends of the recording a call
# may be cut: these are left out.
count_calls() { # THREAD
    sqlite3 -readonly -separator ' ' x.1.db "WITH own AS (
            SELECT id, parent_id, flags, replace(replace(replace(replace(function, 'JS:^', ''), 'JS:*', ''), 'void Turns.', ''), '()', '') AS name
            FROM calls WHERE thread = '$1' AND (function LIKE '%turns.js:%' OR function LIKE '%Turns.%')),
        named AS (SELECT id, parent_id, flags, iif(instr(name, ' '), substr(name, 1, instr(name, ' ') - 1), name) AS name FROM own)
        SELECT count(*), p.name, c.name FROM named c JOIN named p ON c.parent_id = p.id WHERE p.flags & 3 = 0 GROUP BY 2, 3 ORDER BY 2, 3"
}

check_calls() { # THREAD
    count_calls "$1" >counts
    awk '$2 == "step" && $3 == "middle" {steps = $1 / 2} $2 == "middle" && $3 == "leaf" {leaves = $1}
        END {exit !(NR == 2 && steps >= 3 && leaves >= 6 * steps && leaves <= 6 * steps + 6)}' counts ||
        fail "$1: the calls are not the known ones" counts
}

compare() { # NAME [SYMBOLS]
    "$STALLTRAP" decode --dump branches x.1.data | sha256sum >fast.sum
    "$STALLTRAP" decode --reference --dump branches x.1.data | sha256sum >slow.sum
    cmp fast.sum slow.sum || fail "$1: the fast walk's branches are not libipt's"
    "$STALLTRAP" decode --stats x.1.data >stats
    [ "$(jq '.errors + .gaps' stats)" = 0 ] || fail "$1: errors or gaps" stats
    "$STALLTRAP" decode --dump calls x.1.data >dump.calls
    perf_calls x.1.data
    python3 "$SOURCE/tests/golden/normalize_calls.py" dump perf.calls dump.calls ${2:+"$2"} >compared || fail "$1: perf and decode differ" compared
    python3 "$SOURCE/tests/long/against_insn.py" "$STALLTRAP" "$BUILD/tests/long/insn_walk" x.1.data >insn || fail "$1: not what libipt finds" insn
    bash "$SOURCE/tests/golden/check_db.sh" x.1.db >out || fail "$1: the database breaks a rule" out
    echo "$1: $(jq .instructions stats) instructions, $(jq .calls stats) calls in $(sql x.1.db 'SELECT count(*) FROM threads') threads: the same to all; $(cat insn)"
}

# record PID: its steps for half a minute
record() {
    rm -rf x.1.*
    start_arm --source step -p "$1" --ring 8M -o x
    sleep 30
    kill -INT "$arm"
    end_of "$arm" 60 arm
    [ "$status" -eq 0 ] || fail "arm ends with $status" arm.err
}

check_java() {
    cp "$known_trees/Turns.java" .
    javac Turns.java >javac.out 2>&1 || fail "javac ends with $?" javac.out
    start java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet -XX:CompileCommand='dontinline,Turns::*' Turns >java.out 2>&1
    local java=$pid jvm
    wait_for 60 grep -q ready java.out || fail "java does not run" java.out
    jcmd "$java" Compiler.perfmap >jcmd.out || fail "jcmd ends with $?" jcmd.out
    record "$java"
    rm -f "/tmp/perf-$java.map"
    check_calls turns-a
    check_calls turns-b
    jvm=$(dirname "$(dirname "$(realpath "$(command -v java)")")")/lib/server/libjvm.so
    { nm "$jvm"; nm -D "$jvm"; } >symbols 2>/dev/null
    compare java symbols
}

check_node() {
    cp "$known_trees/turns.js" .
    start node --perf-prof --no-opt --always-sparkplug turns.js >node.out 2>&1
    local node=$pid
    wait_for 60 grep -q ready node.out || fail "node does not run" node.out
    record "$node"
    check_calls node
    compare node
}

[ $# -gt 0 ] || set -- java node
for name; do
    "check_$name"
done
