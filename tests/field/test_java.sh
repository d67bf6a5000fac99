#!/bin/bash
# Java: a read, a monitor, a sleep. The program logs how long they took.
. "$SOURCE/tests/field/lib.sh"
need javac openjdk-17-jdk-headless
javac -d . "$field/App.java" 2>build.err || fail "javac" build.err

app() { # ARG...
    rm -f prepared
    injector java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+PreserveFramePointer -Xmx64m App "$name" "$@"
    java=$injector
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
}

if row short java-read; then
    mkfifo fifo fifo.asked
    app "$work/fifo"
    start /usr/bin/python3 "$field/inject.py" answer "$work/fifo"
    caught "$java" 'offcpu>150ms' --callgraph dwarf -- --kind offcpu --thread worker --state sleeping --syscall read --waker 'thread [0-9]+ "python3"' \
        --place '.*read.*' --says 'in read' --never "$sleeping_false"
    kill "$pid" 2>/dev/null
fi
if row whole java-lock 'a monitor is waited for as a condition variable is, and each thread of the machine waits for one'; then
    app
    caught "$java" 'offcpu>150ms' --callgraph dwarf -- --kind offcpu --thread worker --state sleeping --syscall futex \
        --waker 'thread [0-9]+ "holder"' --place '.*ObjectMonitor.*'
fi
if row whole java-sleep 'a sleep is waited for as a condition variable is'; then
    app
    caught "$java" 'offcpu>150ms' --callgraph dwarf -- --kind offcpu --thread worker --state sleeping --syscall futex --place '.*(S|s)leep.*'
fi
done_rows
