# guest_arm_cpus.sh SOURCE BUILD: a CPU that comes while `arm` records the others is a gap. (In the emulator none may go that has an event of
# the PMU.) File: arm-lib.sh.
. ./arm-lib.sh "$@"
second=/sys/devices/system/cpu/cpu1/online
trap 'echo 1 >$second; cleanup' EXIT # where the computer is a real one
echo 0 >$second || fail "CPU 1 cannot be taken offline"
start "$nest" 2000000000
target=$pid
start_arm --source intel-pt --no-kernel --rings cpu --ring 64K -o came -p "$target"
sleep 0.3
echo 1 >$second || fail "CPU 1 cannot be taken online"
sleep 0.3
kill -INT "$arm"
end_of "$arm" 120 "arm while a CPU came"
[ $status -eq 0 ] || fail "arm while a CPU came: exit $status" arm.out arm.err
[ "$(sql came.1.db "SELECT count(*) > 100 FROM calls WHERE function = 'leaf'")" = 1 ] || fail "no calls of CPU 0"
told=$(sql came.1.db "SELECT cpu, end_ns > start_ns, detail FROM gaps WHERE reason = 'cpu not recorded'")
[ "$told" = "1,1,the CPU came or went while the recorder was armed" ] || fail "what is told of CPU 1: $told"
