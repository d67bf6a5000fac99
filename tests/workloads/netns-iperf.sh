#!/bin/sh
# Runs the forwarder under iperf3: between three network namespaces joined by veth pairs, or over loopback.
#
#     client --veth-- forwarder --veth-- server
#
# The namespaces are made here and deleted at the end, however that comes. Needs iperf3, and root for the namespaces.
set -u
usage() {
    cat <<'U'
usage: netns-iperf.sh --bin FORWARDER [OPTION]... [-- FORWARDER-OPTION...]
  --loopback        no namespaces: everything on 127.0.0.1
  --time SECONDS    how long iperf3 sends (default 5)
  --parallel N      iperf3 -P (default 8)
  --reverse         the server sends (iperf3 -R)
  --direct          measure the way without the forwarder too, and print the ratio
  --during COMMAND  run COMMAND by sh while data flows, with FORWARDER_PID and FORWARDER_LOG set; its exit status
                    is the script's unless something else failed
  --log FILE        keep the forwarder's log there
U
}

bin= seconds=5 parallel=8 loopback= reverse= direct= during= log=
while [ $# -gt 0 ]; do
    case $1 in
    --bin) bin=$2 && shift ;;
    --time) seconds=$2 && shift ;;
    --parallel) parallel=$2 && shift ;;
    --during) during=$2 && shift ;;
    --log) log=$2 && shift ;;
    --loopback) loopback=1 ;;
    --reverse) reverse=-R ;;
    --direct) direct=1 ;;
    --help) usage && exit 0 ;;
    --) shift && break ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
[ -x "$bin" ] || { usage >&2; exit 2; }
command -v iperf3 >/dev/null || { echo "netns-iperf.sh: iperf3 is missing (Debian: apt-get install iperf3)" >&2; exit 1; }

work=$(mktemp -d) || exit 1
log=${log:-$work/log}
client=wl$$c middle=wl$$f server=wl$$s
server_pid= forwarder_pid= during_pid=
cleanup() {
    for pid in $during_pid $forwarder_pid $server_pid; do
        kill "$pid" 2>/dev/null
    done
    wait
    if [ -z "$loopback" ]; then
        # Deleting a namespace deletes its ends of the veth pairs, and so the pairs.
        for name in $client $middle $server; do
            ip netns delete $name 2>/dev/null
        done
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
fail() {
    echo "netns-iperf.sh: $*" >&2
    exit 1
}

# in_ns NAMESPACE COMMAND...; over loopback the command runs as it is
in_ns() {
    name=$1
    shift
    if [ -n "$loopback" ]; then exec "$@"; else exec ip netns exec "$name" "$@"; fi
}

make_namespaces() {
    [ "$(id -u)" = 0 ] || fail "namespaces need root; --loopback does not"
    for name in $client $middle $server; do
        ip netns add $name || fail "cannot make the namespace $name"
        ip -n $name link set lo up
    done
    ip link add cf netns $client type veth peer name cf netns $middle &&
        ip link add fs netns $middle type veth peer name fs netns $server || fail "cannot make the veth pairs"
    ip -n $client address add 10.99.1.1/24 dev cf && ip -n $middle address add 10.99.1.2/24 dev cf &&
        ip -n $middle address add 10.99.2.1/24 dev fs && ip -n $server address add 10.99.2.2/24 dev fs &&
        ip -n $client link set cf up && ip -n $middle link set cf up &&
        ip -n $middle link set fs up && ip -n $server link set fs up &&
        ip -n $client route add 10.99.2.0/24 via 10.99.1.2 && ip -n $server route add 10.99.1.0/24 via 10.99.2.1 &&
        ip netns exec $middle sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' || fail "cannot set up the network"
}

wait_for() { # wait_for WHAT COMMAND...: up to 10 s
    what=$1
    shift
    for _ in $(seq 200); do
        "$@" 2>/dev/null && return 0
        sleep 0.05
    done
    fail "$what did not come up"
}
server_listens() {
    (in_ns $server ss -Hltn "sport = :$server_port") | grep -q LISTEN
}

# The bits a second that the receiver got.
measure() { # measure ADDRESS PORT
    (in_ns $client timeout $((seconds + 30)) iperf3 -c "$1" -p "$2" -P "$parallel" -t "$seconds" $reverse -J) \
        >"$work/iperf.json" 2>"$work/iperf.err" || fail "iperf3: $(cat "$work/iperf.err" "$work/iperf.json" | grep -m1 error)"
    awk '/"sum_received"/ {in_sum = 1} in_sum && /"bits_per_second"/ {gsub(/[^0-9.e+]/, "", $2); print $2; exit}' \
        "$work/iperf.json"
}

if [ -n "$loopback" ]; then
    listen=127.0.0.1 target=127.0.0.1 server_port=$((20000 + $$ % 20000))
else
    listen=10.99.1.2 target=10.99.2.2 server_port=5201
    make_namespaces
fi

(in_ns $server iperf3 -s -B $target -p $server_port) >"$work/server.out" 2>&1 &
server_pid=$!
wait_for "iperf3 -s" server_listens
(in_ns $middle "$bin" --listen $listen:0 --target $target:$server_port --log "$log" "$@") &
forwarder_pid=$!
wait_for "the forwarder" grep -q '^ready ' "$log"
port=$(sed -n 's/^listen=[^ ]*:\([0-9]*\) .*/\1/p' "$log")

if [ -n "$during" ]; then
    (sleep 1; FORWARDER_PID=$forwarder_pid FORWARDER_LOG=$log exec sh -c "$during") &
    during_pid=$!
fi
through=$(measure $listen "$port") || exit 1
status=0
if [ -n "$during_pid" ]; then
    wait $during_pid
    status=$?
    during_pid=
fi
kill -TERM $forwarder_pid
wait $forwarder_pid
ended=$?
forwarder_pid=
[ $ended -eq 0 ] || fail "the forwarder ended with status $ended"
awk -v bits="$through" -v n="$parallel" -v s="$seconds" \
    'BEGIN {if (bits + 0 <= 0) exit 1; printf "through the forwarder: %.2f Gbit/s, %d streams, %d s\n", bits / 1e9, n, s}' ||
    fail "iperf3 saw no data"
if [ -n "$direct" ]; then
    straight=$(measure $target $server_port) || exit 1
    awk -v a="$straight" -v b="$through" 'BEGIN {printf "without it: %.2f Gbit/s, ratio %.2f\n", a / 1e9, b / a}'
fi
grep -c '^stall ' "$log" | sed 's/^/stalls: /'
exit $status
