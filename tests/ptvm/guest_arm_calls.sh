# guest_arm_calls.sh SOURCE BUILD user|both[-all]|kernel[-all]|forwarder: small workloads and the forwarder, for the comparison with perf's calls: user
# code, kernel code, and both. Kernel code alone is in recordings of perf's, which we decode. All is decoded and compared outside. File:
# arm-lib.sh.
part=$3
. ./arm-lib.sh "$@"
workloads="coroutine dlopen_close exceptions fork_exec func_pointers ifunc nest nested_signals plt_lazy plt_now recursion segv
    setjmp_longjmp signals tail_calls threads vfork_exec"
# With kernel code each costs a hundred thousand calls, most of them alike: some of them in a short run (`all`: each).
several="coroutine exceptions fork_exec nested_signals plt_lazy threads"
[ "$part" = "${part%-all}" ] || several=$workloads
part=${part%-all}
for name in $several; do echo "$programs/$name"; done >all.sh
echo "exit 0" >>all.sh

calls_user() {
    for name in $workloads; do
        "$STALLTRAP" arm --source intel-pt --no-kernel --no-decode --ring 4M -o "$name" -- "$programs/$name" >arm.out 2>arm.err || fail "$name: arm ends with $?" arm.out arm.err
        outside "$name.1.data" whole
    done
}

calls_both() {
    "$STALLTRAP" arm --source intel-pt --kernel --no-decode --ring 32M -o both -- sh all.sh >arm.out 2>arm.err || fail "both: arm ends with $?" arm.out arm.err
    outside both.1.data cpus
    # shellcheck disable=SC2086
    outside both.1.data threads $several
}

calls_kernel() {
    perf record -q -e intel_pt//k --kcore -m ,32M -o kernel.data sh all.sh >arm.out 2>arm.err || fail "kernel: perf ends with $?" arm.out arm.err
    outside kernel.data cpus
}

calls_forwarder() {
    local mode
    start_forwarder --load-connections 2 --load-rate 1000000
    for mode in no-kernel kernel; do
        start_arm --source intel-pt --$mode --no-decode --ring 256K -o forwarder-$mode -p "$forwarder"
        sleep 0.5
        kill -INT "$arm"
        end_of "$arm" 120 "arm -p forwarder"
        [ $status -eq 0 ] || fail "forwarder-$mode: arm ends with $status" arm.out arm.err
        outside forwarder-$mode.1.data branches
    done
    perf record -q -e intel_pt//k --kcore -m ,16M -o forwarder.data -p "$forwarder" -- sleep 0.3 >arm.out 2>arm.err || fail "forwarder: perf ends with $?" arm.out arm.err
    outside forwarder.data branches
}

"calls_$part"
