#!/bin/bash
# Node: a loop that computes, a synchronous read. The program logs how long they took.
. "$SOURCE/tests/field/lib.sh"
need node nodejs

app() { # ARG...
    rm -f prepared
    injector node --perf-basic-prof --interpreted-frames-native-stack "$field/app.js" "$name" "$@"
    node=$injector
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
}

if row short node-busy; then
    app
    caught "$node" 'busy>150ms' -- --kind busy --tid "$node" --place '.*hogTheLoop.*' --says 'hogTheLoop' --never "$computing_false"
    rm -f "/tmp/perf-$node.map"
fi
if row short node-read; then
    mkfifo fifo fifo.asked
    app "$work/fifo"
    start /usr/bin/python3 "$field/inject.py" answer "$work/fifo"
    caught "$node" 'offcpu>150ms' -- --kind offcpu --tid "$node" --state sleeping --syscall read --waker 'thread [0-9]+ "python3"' \
        --place '.*readTheFifo.*' --says 'in read' \
        --says "cause +slow writer of a pipe: nothing came through $work/fifo for [0-9]+ ms; then thread $pid \"python3\" wrote"
    kill "$pid" 2>/dev/null
    rm -f "/tmp/perf-$node.map"
fi
done_rows
