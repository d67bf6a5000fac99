# guest_arm_killed.sh SOURCE BUILD TIMES: two targets, of which one is killed while the snapshot is being written, TIMES times, each time a
# little later. The other's calls are there, and what there is of the killed one's is right. strace holds the recorder up at every file
# that it opens, so that it is no matter of luck. Nothing is decoded here: the machine is slow at that. File: arm-lib.sh.
times=$3
. ./arm-lib.sh "$@"
start "$nest" 2000000000
second=$pid
being_written() { compgen -G ".killed$n.1.data.*" >/dev/null; }
for ((n = 1; n <= times; n++)); do
    start "$nest" 2000000000
    first=$pid
    start_arm --source intel-pt --no-kernel --ring 64K --no-decode -o "killed$n" -p "$first,$second"
    start strace -o /dev/null -e trace=openat,fsync -e inject=openat,fsync:delay_enter=200000 -p "$arm" 2>strace.err
    wait_for 30 grep -q attached strace.err || fail "strace does not attach" strace.err
    kill -INT "$arm"
    wait_for 60 being_written || fail "no snapshot is written" arm.out arm.err
    sleep "0.$((n % 8))"
    being_written || fail "the snapshot was written before the target could be killed ($n)"
    kill -KILL "$first"
    end_of "$arm" 120 "arm with a killed target"
    [ $status -eq 0 ] || fail "a target that is killed during the snapshot: exit $status" arm.out arm.err
    outside "killed$n.1.data" calls leaf "$second" 100
done
echo "$times targets killed while the snapshot was being written"
