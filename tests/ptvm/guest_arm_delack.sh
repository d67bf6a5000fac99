# guest_arm_delack.sh SOURCE BUILD: the delayed-ACK stall with the whole machine recorded (-a): in the calls are the send that was held
# back and the timer that ended the wait, which ran in nobody's context. Decoded and looked at outside. File: arm-lib.sh.
. ./arm-lib.sh "$@"
start_forwarder --stall nagle:40:100 --stall-count 3 --load-connections 1 --load-rate 100000
start_arm --source intel-pt -a --kernel --ring 16M --no-decode -o x
cat arm.err
kill -USR1 "$forwarder"
wait_for 60 at_least 1 '^stall .*kind=nagle' forwarder.log || fail "the forwarder does not stall" forwarder.log
kill -INT "$arm"
end_of "$arm" 300 "arm -a"
cat arm.out
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
grep kind=nagle forwarder.log
outside x.1.data delack "$forwarder"
