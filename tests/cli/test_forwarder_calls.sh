#!/bin/bash
# How many bytes a forwarder moves a call, as `report syscalls` tells it: with buffers of 8, 16 and 64 KiB under iperf3 on eight
# connections, and of requests and responses of 32 bytes. Needs root: tracepoints are read.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"

# moved DB CALL: "calls bytes_a_call" of it
moved() {
    "$STALLTRAP" report "$1" syscalls --format csv | awk -F, -v call="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
        $column["syscall"] == call { print $column["calls"], $column["bytes_a_call"] }'
}

# bulk BYTES LEAST: the forwarder reads and sends no more than its buffer holds at a time, and with so much to do more than LEAST
bulk() {
    local call calls bytes
    rm -f bulk.* armed
    bash "$SOURCE/tests/workloads/netns-iperf.sh" --bin "$programs/forwarder" --loopback --time 3 --parallel 8 --during \
        "timeout -s INT 1 '$STALLTRAP' arm --source sample --syscalls --ring 4M -p \$FORWARDER_PID -o bulk" -- --buffer "$1" >out 2>err
    [ -s bulk.1.db ] || fail "buffers of $1: no snapshot" out err
    grep -Eq '^through the forwarder: [0-9.]+ Gbit/s, 8 streams' out || fail "buffers of $1: iperf3 saw no data" out err
    for call in recvfrom sendto; do
        read -r calls bytes < <(moved bulk.1.db $call)
        echo "buffer $1: $call $calls calls, $bytes bytes a call"
        [ "${calls:-0}" -ge 500 ] || fail "buffers of $1: ${calls:-0} calls of $call"
        awk -v b="$bytes" -v least="$2" -v most="$1" 'BEGIN { exit !(b > least && b <= most) }' || fail "buffers of $1: $bytes bytes a call of $call"
    done
}
bulk 8192 4096
bulk 16384 8192
bulk 65536 16384

# A request, its response, and so on: one recv and one send of exactly 32 bytes each way.
rounds=300
start python3 "$SOURCE/tests/cli/peers.py" echo port
wait_for 10 test -s port || fail "the echo server does not listen"
start "$programs/forwarder" --listen 127.0.0.1:0 --target "127.0.0.1:$(cat port)" --log forwarder.log 2>forwarder.err
forwarder=$pid
wait_for 10 at_least 1 '^ready ' forwarder.log || fail "the forwarder is not ready" forwarder.err
port=$(sed -n 's/^listen=[^ ]*:\([0-9]*\) .*/\1/p' forwarder.log)
start_arm --source sample --syscalls --ring 16M -p "$forwarder" -o small
python3 "$SOURCE/tests/cli/peers.py" ask "$port" 32 $rounds || fail "the forwarder does not forward" forwarder.log
kill -INT "$arm"
end_of "$arm" 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
for call in recvfrom sendto; do
    read -r calls bytes < <(moved small.1.db $call)
    echo "32 bytes: $call $calls calls, $bytes bytes a call"
done
[ "$(moved small.1.db sendto)" = "$((2 * rounds)) 32.0" ] || fail "32 bytes: sendto: $(moved small.1.db sendto)"
# The end of the connection is read too: two calls of no bytes.
read -r calls bytes < <(moved small.1.db recvfrom)
results=$(sql small.1.db "SELECT group_concat(detail || ' x ' || n, ', ') FROM (SELECT detail, count(*) AS n FROM mark WHERE name = 'sysret' AND detail LIKE 'recvfrom = %' AND detail NOT LIKE '% = 0' GROUP BY detail)")
[ "$results" = "recvfrom = 32 x $((2 * rounds))" ] || fail "32 bytes: $results"
exit 0
