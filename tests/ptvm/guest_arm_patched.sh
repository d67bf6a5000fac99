# guest_arm_patched.sh SOURCE BUILD: the kernel's code changes while it is recorded: a BPF program is attached to a function that the target
# calls all the time. What ran before and what ran after is decoded, each with the code of its time, by us and by perf. Code of a module and
# of the vdso is in it too. File: arm-lib.sh.
. ./arm-lib.sh "$@"
modprobe sch_netem || fail "no module sch_netem"
tc qdisc add dev lo root netem delay 1ms || fail "no netem"
start python3 -c '
import os, socket, time
network = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
file = os.open("/dev/zero", os.O_RDONLY)
while True:
    os.read(file, 1)
    network.sendto(b"x", ("127.0.0.1", 9))
    time.clock_gettime(time.CLOCK_MONOTONIC)
    time.sleep(0.2)'
reader=$pid
start_arm --source intel-pt --kernel --no-decode --rings thread --ring 8M -o patched -p "$reader"
sleep 1
start bpftrace -e 'kfunc:vfs_read { @[pid] = count(); }' >bpftrace.out 2>&1
wait_for 60 grep -q Attaching bpftrace.out || fail "bpftrace does not attach" bpftrace.out
sleep 1
kill -INT "$arm"
end_of "$arm" 120 "arm"
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
running "$pid" || fail "bpftrace has ended" bpftrace.out
tc qdisc del dev lo root
outside patched.1.data patched
