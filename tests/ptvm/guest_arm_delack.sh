# guest_arm_delack.sh SOURCE BUILD: the delayed-ACK stall with the whole machine recorded (-a): in the calls are the send that was held
# back and the timer that ended the wait, which ran in nobody's context. File: arm-lib.sh.
. ./arm-lib.sh "$@"
start_forwarder --stall nagle:40:100 --stall-count 3 --load-connections 1 --load-rate 100000
start_arm --source intel-pt -a --kernel --ring 16M -o x
cat arm.err
kill -USR1 "$forwarder"
wait_for 60 at_least 1 '^stall .*kind=nagle' forwarder.log || fail "the forwarder does not stall" forwarder.log
kill -INT "$arm"
end_of "$arm" 300 "arm -a"
cat arm.out
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
grep kind=nagle forwarder.log

wait="(SELECT start_ns, end_ns, thread_id FROM calls WHERE function = 'receive_both' AND tid = $forwarder AND duration_ns > 30000000 ORDER BY start_ns LIMIT 1)"
[ "$(sql x.1.db "SELECT count(*) FROM $wait")" = 1 ] || fail "no call of receive_both that lasts" arm.out
for function in tcp_write_xmit tcp_delack_timer; do
    sql x.1.db "SELECT c.function, c.thread, c.tid, (c.start_ns - w.start_ns) / 1000000.0 || ' ms after the wait began' FROM calls c, $wait w
        WHERE c.function = '$function' AND c.kernel AND c.start_ns BETWEEN w.start_ns - 5000000 AND w.end_ns" >found
    [ -s found ] || fail "no call of $function in the delayed-ACK stall" arm.out
    head -n 3 found
done
