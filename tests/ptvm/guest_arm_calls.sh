# guest_arm_calls.sh SOURCE BUILD: small workloads and the forwarder, for the comparison with perf's calls: user code and both user and
# kernel code in our snapshots, kernel code alone in recordings of perf's, which we decode. And a program that counts its own calls. File:
# arm-lib.sh.
. ./arm-lib.sh "$@"
workloads="coroutine dlopen_close exceptions fork_exec func_pointers ifunc nest nested_signals plt_lazy plt_now recursion segv
    setjmp_longjmp signals tail_calls threads vfork_exec"
for name in $workloads; do echo "$programs/$name"; done >all.sh
echo "exit 0" >>all.sh

check_run() { # NAME: the recording of all.sh ended well
    [ $status -eq 0 ] || fail "$1: the recording ends with $status" arm.out arm.err
}

for name in $workloads; do
    "$STALLTRAP" arm --source intel-pt --no-kernel --ring 4M -o "$name" -- "$programs/$name" >arm.out 2>arm.err || fail "$name: arm ends with $?" arm.out arm.err
    same_calls "$name"
    no_gaps "$name"
done
"$STALLTRAP" arm --source intel-pt --kernel --ring 32M -o both -- sh all.sh >arm.out 2>arm.err
status=$?
check_run both
outside both.1.data cpus
for name in $workloads; do
    [ "$(sql both.1.db "SELECT count(*) > 0 FROM threads WHERE name = '${name:0:15}'")" = 1 ] || fail "both: no thread of $name"
done
perf record -q -e intel_pt//k --kcore -m ,32M -o kernel.data sh all.sh >arm.out 2>arm.err
status=$?
check_run kernel
outside kernel.data kernel

start_forwarder --load-connections 2 --load-rate 1000000
for mode in no-kernel kernel; do
    start_arm --source intel-pt --$mode --ring 256K -o forwarder-$mode -p "$forwarder"
    sleep 0.5
    kill -INT "$arm"
    end_of "$arm" 120 "arm -p forwarder"
    check_run forwarder-$mode
    same_branches forwarder-$mode
done
perf record -q -e intel_pt//k --kcore -m ,16M -o forwarder.data -p "$forwarder" -- sleep 0.3 >arm.out 2>arm.err
status=$?
check_run forwarder
outside forwarder.data branches

"$STALLTRAP" arm --source intel-pt --no-kernel --no-decode --ring 32M -o count -- "$nest" 30000 >arm.out 2>arm.err
status=$?
check_run count
outside count.1.data branches
nest_calls count 30000
