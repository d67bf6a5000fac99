#!/bin/bash
# What idle=list and idle=learned make of stalls in system calls of the idle list: a table of how many were made beside a normal load, how
# many fired, how many were missed, and how many fired that were none. Counted in the histograms of watch, which has what would fire.
. "$SOURCE/tests/field/lib.sh"
. "$SOURCE/tests/field/idle.sh"
port=$(free_port)
prepare() {
    rm -f prepared
    inject redis "$port" "$name"
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
}

if row short redis-sleep && command -v redis-server >/dev/null; then
    start redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --enable-debug-command yes --dir "$work" >redis.log
    redis=$pid
    wait_for 60 listens "$port" || fail "redis does not listen" redis.log
    load redis_load "$port"
    name=redis-sleep
    prepare
    table "$redis" offcpu state=sleeping
    kill "$injector"
    [ "$(fired redis-sleep offcpu list)" = 0 ] || fail "redis-sleep: the list has it as idle"
    [ "$(fired redis-sleep offcpu learned)" -ge $((stalls - 1)) ] || fail "redis-sleep: not learned" watch.json
fi
if row whole redis-busy && [ -n "${redis:-}" ]; then
    name=redis-sleep prepare
    table "$redis" busy
    kill "$injector"
fi

app() { # PROGRAM...
    rm -f prepared
    injector "$@"
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
    table "$injector" offcpu state=sleeping
    kill "$injector"
}

for stall in python-sleep python-lock; do
    if row whole $stall; then app /usr/bin/python3 "$field/app.py" $stall; fi
done
if row whole node-wait && command -v node >/dev/null; then app node "$field/app.js" node-wait; fi
if row whole go-mutex && command -v go >/dev/null; then
    GOFLAGS=-trimpath GO111MODULE=off GOCACHE=$work/cache go build -o app "$field/app.go" 2>build.err || fail "go build" build.err
    app ./app go-mutex
fi
for stall in java-lock java-sleep; do
    if row whole $stall && command -v javac >/dev/null; then
        [ -e App.class ] || javac -d . "$field/App.java" 2>build.err || fail "javac" build.err
        app java -Xshare:auto -Xmx64m App $stall
    fi
done
done_rows
