#!/bin/bash
# Go: a goroutine on a thread of its own that reads, one that waits for a mutex. The program logs how long they took.
. "$SOURCE/tests/field/lib.sh"
need go golang-go
GOFLAGS=-trimpath GO111MODULE=off GOCACHE=$work/cache go build -o app "$field/app.go" 2>build.err || fail "go build" build.err

app() { # ARG...
    rm -f prepared
    injector ./app "$name" "$@"
    go=$injector
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
}

if row short go-read; then
    mkfifo fifo fifo.asked
    app "$work/fifo"
    start /usr/bin/python3 "$field/inject.py" answer "$work/fifo"
    caught "$go" 'syscall:read>150ms' -- --kind syscall --state sleeping --syscall read --waker 'thread [0-9]+ "python3"' \
        --place 'main\.readTheFifo' --says 'in read' --says 'main\.readTheFifo' --never "$sleeping_false"
    kill "$pid" 2>/dev/null
fi
if row short go-offcpu; then
    rm -f fifo fifo.asked && mkfifo fifo fifo.asked
    name=go-read app "$work/fifo"
    start /usr/bin/python3 "$field/inject.py" answer "$work/fifo"
    caught "$go" 'offcpu>150ms' -- --kind offcpu --syscall read --place 'main\.readTheFifo'
    kill "$pid" 2>/dev/null
fi
if row whole go-busy 'busy does not fire on a goroutine that computes for 280 ms; why is not known'; then
    app
    caught "$go" 'busy>150ms' -- --kind busy --place 'main\.hogTheThread' --says 'main\.hogTheThread' --never "$computing_false"
fi
if row whole go-mutex 'a goroutine that waits is no thread that waits'; then
    app
    caught "$go" 'offcpu>150ms,idle=yes' -- --kind offcpu --place 'main\.waitForMutex'
fi
done_rows
