#!/bin/bash
# Debian's socat, a forwarder nobody here wrote, is armed by its pid while a file goes through it; Ctrl-C gives a snapshot whose calls
# have names, and the file arrives whole.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
megabytes=4
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
# As slowly as it takes to be still at it when the snapshots are taken, then fast.
send() {
    local i
    for ((i = 0; i < megabytes * 16; i++)); do
        dd if=sent bs=64K skip=$i count=1 status=none
        [ -e fast ] || sleep 0.1
    done | socat -u STDIN TCP:127.0.0.1:"$1"
}
start send $port
source=$pid
came() { [ "$(stat -c %s received 2>/dev/null || echo 0)" -gt "$1" ]; }
wait_for 20 came 0 || fail "nothing comes through"

start_arm --source step -p $socat -o x
wait_for 60 came $(($(stat -c %s received) + 400000)) || fail "nothing comes through while armed" arm.err
kill -INT $arm
end_of $arm 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
grep -q '^wrote x\.1\.data, x\.1\.db (' arm.out || fail "no 'wrote' line" arm.out
came $(((megabytes << 20) - 1)) && fail "the transfer was over before the snapshot"
running $socat || fail "socat has not survived"

start_arm --source step -p $socat -o x # stays armed to the end of the transfer
touch fast
end_of $arm 120 arm
[ $status -eq 0 ] && [ -s x.2.db ] || fail "arm ends with $status when socat ends" arm.out arm.err
for one in source socat sink; do
    end_of ${!one} 60 $one
    [ $status -eq 0 ] || fail "$one ends with $status"
done
cmp sent received || fail "the file has not arrived whole"

# Names: of libc's functions, all of them; of the stubs through which socat, which is stripped, calls them.
for function in '%read' '%write' '%select' 'read@plt' 'write@plt' 'select@plt'; do
    calls=$(sql x.1.db "SELECT coalesce(sum(calls), 0) FROM functions WHERE function LIKE '$function'")
    [ "$calls" -gt 3 ] || fail "$calls calls of $function, expected more"
done
nameless=$(sql x.1.db "SELECT module, function FROM functions WHERE function LIKE '[%+0x%' AND module NOT LIKE 'socat%'")
[ -z "$nameless" ] || fail "calls without a name: $nameless"
for db in x.1.db x.2.db; do
    bad=$(sql $db "SELECT value FROM meta WHERE key = 'decode_errors' AND value <> 0")$(sql $db "SELECT reason, detail FROM gaps WHERE start_ns > 0")
    [ -z "$bad" ] || fail "$db: gaps or errors: $bad"
done
