#!/bin/sh
# Runs netns-iperf.sh for a second with two stalls and checks what it prints and what it leaves behind.
# usage: netns_test.sh FORWARDER [NETNS-IPERF-OPTION...]
set -u
here=$(dirname "$0")
forwarder=$1
shift
before=$(ip netns list | wc -l)
out=$("$here/netns-iperf.sh" --bin "$forwarder" --time 1 "$@" -- --stall busy:40:100 --stall-count 2 2>&1)
status=$?
echo "$out"
[ $status -eq 0 ] || { echo "exit status $status"; exit 1; }
echo "$out" | grep -Eq '^through the forwarder: [0-9.]+ Gbit/s, 8 streams, 1 s$' || { echo "no throughput"; exit 1; }
echo "$out" | grep -q '^stalls: 2$' || { echo "not exactly two stalls"; exit 1; }
[ "$(ip netns list | wc -l)" -eq "$before" ] || { echo "namespaces are left behind"; exit 1; }
