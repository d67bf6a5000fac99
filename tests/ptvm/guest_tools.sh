# guest_tools.sh: what tests in the machine may count on: kprobes, fentry and tracepoints for BPF, kcore, modules, loopback, namespaces.
fail() {
    echo "FAILED: $*"
    exit 1
}

hits() { # PROBE: counts it with bpftrace while something runs
    timeout 60 bpftrace -e "$1 { @n = count(); } interval:ms:500 { exit(); }" -c '/usr/bin/find /usr/bin -newer /etc/hostname' 2>&1 | tail -n 1
}

for probe in kprobe:vfs_read kfunc:vfs_read tracepoint:sched:sched_switch uprobe:/lib/x86_64-linux-gnu/libc.so.6:malloc; do
    n=$(hits $probe)
    [[ $n =~ ^@n:\ [1-9] ]] || fail "bpftrace $probe: $n"
done
[ "$(od -A n -N 4 -c /proc/kcore | tr -d ' ')" = '177ELF' ] || fail "no /proc/kcore"
grep -q ' T schedule$' /proc/kallsyms || fail "no addresses in /proc/kallsyms"
grep -q '^0000000000000000 T schedule$' /proc/kallsyms && fail "addresses are hidden in /proc/kallsyms"
ip netns add one
ip link add va type veth peer name vb netns one
ip addr add 10.9.0.1/24 dev va && ip link set va up
ip -n one addr add 10.9.0.2/24 dev vb && ip -n one link set vb up
tc qdisc add dev va root netem delay 5ms
python3 - <<'PY' || fail "no TCP on loopback"
import socket
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
c.sendall(b"x")
assert s.accept()[0].recv(1) == b"x"
PY
mkdir /sys/fs/cgroup/some || fail "no cgroup can be made"
[ -t 1 ] && fail "the output is a terminal"
echo "tools: as expected on $(uname -r)"
