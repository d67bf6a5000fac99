#!/bin/bash
# Debian's socat, a forwarder nobody here wrote, is armed by its pid while a file goes through it; Ctrl-C gives a snapshot whose calls
# have names, and the file arrives whole.
set -u
. "$SOURCE/tests/cli/lib.sh"
megabytes=8
head -c ${megabytes}M /dev/urandom >sent

listening() { # PORT PID: that process listens there
    ss -Hltnp "sport = :$1" | grep -q "pid=$2,"
}
# start_listener NAME COMMAND with PORT in it...: on a free port, which is then $port; its pid is $pid
start_listener() {
    local try
    for ((try = 0; try < 20; try++)); do
        port=$((20000 + RANDOM % 12000))
        start "${@//PORT/$port}" 2>listener.err
        wait_for 5 eval 'listening $port $pid || ! running $pid'
        listening $port $pid && return
        wait $pid
    done
    fail "no free port for $*" listener.err
}
start_listener socat -u TCP-LISTEN:PORT,bind=127.0.0.1 CREATE:received
sink=$pid sink_port=$port
start_listener socat -u TCP-LISTEN:PORT,bind=127.0.0.1 TCP:127.0.0.1:$sink_port
socat=$pid
# Slow enough at first to be still at it when the snapshot is taken.
start sh -c "{ head -c 1M; sleep 3; cat; } <sent | socat -u STDIN TCP:127.0.0.1:$port"
source=$pid
wait_for 20 test -s received || fail "nothing comes through"

start_arm --source step -p $socat -o x
wait_for 60 eval '[ "$(stat -c %s received)" -gt 1200000 ]' || fail "nothing comes through while armed" arm.err
kill -INT $arm
end_of $arm 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
[ "$(stat -c %s received)" -lt $((megabytes << 20)) ] || fail "the transfer was over before the snapshot"

# It goes on, armed once more for a while, to its end.
start_arm --source step -p $socat -o x
wait_for 10 false
kill -INT $arm
end_of $arm 60 arm
[ $status -eq 0 ] && [ -s x.2.db ] || fail "arm ends with $status the second time" arm.out arm.err
for one in source socat sink; do
    end_of ${!one} 60 $one
    [ $status -eq 0 ] || fail "$one ends with $status"
done
cmp sent received || fail "the file has not arrived whole"

for db in x.1.db x.2.db; do
    bad=$(sql $db "SELECT value FROM meta WHERE key = 'decode_errors' AND value <> 0")$(sql $db "SELECT reason FROM gaps WHERE reason <> 'paused'")
    [ -z "$bad" ] || fail "$db: gaps or errors: $bad"
done
for name in read write select _xiotransfer xiotransfer xioread xiowrite; do
    echo "$name $(sql x.1.db "SELECT coalesce(sum(calls), 0) FROM functions WHERE function IN ('$name', '__$name', '__libc_$name', '__GI___$name')")"
done >named
sqlite3 -readonly x.1.db "SELECT module, function, calls FROM functions ORDER BY calls DESC LIMIT 30" >functions
