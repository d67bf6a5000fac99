#!/bin/bash
# Debian's memcached on a CPU that another program takes from it, which logs when.
. "$SOURCE/tests/field/lib.sh"
need memcached memcached

port=$(free_port)
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
start taskset -c "$cpu" memcached -u nobody -l 127.0.0.1 -p "$port" -U 0 -t 1 -m 16 2>memcached.err
memcached=$pid
wait_for 60 listens "$port" || fail "memcached does not listen" memcached.err
load line_load "$port" version

# A thread waits from when it has something to do: a part of the time in which the CPU was taken.
if row short memcached; then
    inject hog "$cpu" memcached
    caught "$memcached" 'runq>100ms' -- --part --kind runq --thread '(mc-|memcached).*' --says 'thread [0-9]+ "cpu-hog"' \
        --says 'cause +CPU taken by other work' --says 'ready to run; thread [0-9]+ "cpu-hog" (had the CPU for [0-9]+ ms|got the CPU)' \
        --never "$sleeping_false" --never 'who had the CPU is not known'
fi
done_rows
