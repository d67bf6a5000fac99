#!/bin/bash
# arm says what to do where the functions of a program have no names without it; and says nothing where there is nothing to do. Programs
# are known by the names of the files that they have mapped as code, so sleep(1) stands for them here; tests/field has real ones.
set -u
. "$SOURCE/tests/cli/lib.sh"

# said PROGRAM [PERF-MAP]: what arm says of a program of that name before it is armed, into `said`
said() {
    mkdir -p "$work/$1.d"
    cp /bin/sleep "$work/$1.d/$1"
    start "$work/$1.d/$1" 100
    wait_for 20 grep -q "/$1\$" "/proc/$pid/maps" || fail "$1 does not start"
    [ -z "${2:-}" ] || : >"/tmp/perf-$pid.map"
    timeout 60 "$STALLTRAP" arm --source sample -p "$pid" -o x --timeout 50ms >arm.out 2>arm.err
    grep -q '^armed' arm.err || fail "$1: not armed" arm.err
    sed '/^armed/,$d' arm.err >said
    rm -f "/tmp/perf-$pid.map"
    kill "$pid"
}

said libjvm.so
grep -q "process $pid is a Java program: .*jcmd $pid Compiler.perfmap.*PreserveFramePointer" said || fail "Java" arm.err
said libjvm.so map
[ ! -s said ] || fail "Java with a perf map" arm.err
said node
grep -q "process $pid is a Node.js program: .*--perf-basic-prof" said || fail "Node.js" arm.err
said node map
[ ! -s said ] || fail "Node.js with a perf map" arm.err
said python3.9
grep -q "process $pid has a Python whose frames are not known" said || fail "an old Python" arm.err
said nodes
[ ! -s said ] || fail "another program" arm.err

start /usr/bin/python3 -c 'import time; time.sleep(100)'
wait_for 60 grep -q "python3" "/proc/$pid/comm"
timeout 60 "$STALLTRAP" arm --source sample -p "$pid" -o x --timeout 50ms >arm.out 2>arm.err
grep -q '^armed' arm.err || fail "not armed" arm.err
! grep -q 'has a Python' arm.err || fail "a Python that is known" arm.err
