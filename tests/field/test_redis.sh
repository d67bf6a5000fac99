#!/bin/bash
# Debian's redis: DEBUG SLEEP, a slow script, KEYS of many keys. How long they took is what its own slow log says.
. "$SOURCE/tests/field/lib.sh"
need redis-server redis-server

port=$(free_port)
start redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --enable-debug-command yes --dir "$work" >redis.log
redis=$pid
wait_for 60 listens "$port" || fail "redis does not listen" redis.log
load redis_load "$port"

prepare() {
    rm -f prepared
    inject redis "$port" "$name"
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
}

if row short redis-sleep; then
    prepare
    caught "$redis" 'syscall:clock_nanosleep>150ms' --callgraph dwarf -- --kind syscall --tid "$redis" --state sleeping --syscall clock_nanosleep \
        --place debugCommand --says 'clock_nanosleep' --says 'woken by +its own time-out' --says 'cause +own time-out' \
        --never "$sleeping_false"
fi
if row whole redis-busy; then
    name=redis-sleep prepare
    caught "$redis" 'busy>150ms' --callgraph dwarf -- --kind busy --tid "$redis" --place debugCommand --says clock_nanosleep
fi
if row short redis-lua; then
    prepare
    caught "$redis" 'busy>150ms' --callgraph dwarf -- --kind busy --tid "$redis" --place 'lua_pcall|evalGenericCommand' \
        --never "$computing_false"
fi
if row whole redis-keys; then
    prepare
    caught "$redis" 'busy>150ms' --callgraph dwarf -- --kind busy --tid "$redis" --place keysCommand --says keysCommand \
        --never "$computing_false"
fi
if row whole redis-func; then
    name=redis-keys prepare
    caught "$redis" 'func:keysCommand>100ms' --callgraph dwarf -- --kind func --tid "$redis" --place keysCommand --says keysCommand \
        --never "$computing_false"
fi
done_rows
