# guest_arm_trap.sh SOURCE BUILD KIND: the main job: a forwarder under TCP load is armed with offcpu>20ms, user and kernel recorded,
# and stalls for 40 ms. KIND: lock or nagle. File: arm-lib.sh.
kind=$3
. ./arm-lib.sh "$@"

has() { # WHAT SQL: the query of x.1.db gives 1
    [ "$(sql x.1.db "$2")" = 1 ] || fail "no $1" arm.out arm.err
}

start_forwarder --stall "$kind:40:100" --stall-count 3 --load-connections 2 --load-rate 1000000
start_arm --source intel-pt --ring 512K -p "$forwarder" --on 'offcpu>20ms,state=sleeping+blocked' -o x
grep -q 'intel-pt, user+kernel, ' arm.err || fail "the armed line" arm.err
kill -USR1 "$forwarder"
end_of "$arm" 200 "arm"
cat arm.err arm.out
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
running "$forwarder" || fail "the forwarder has ended" forwarder.log
kill -TERM "$forwarder"

"$STALLTRAP" report x.1.db | tee report.out
stalled="(SELECT thread_id FROM stalls WHERE id = (SELECT value FROM meta WHERE key = 'trigger_stall_id'))"
stall="(SELECT start_ns FROM stalls WHERE id = (SELECT value FROM meta WHERE key = 'trigger_stall_id'))"
case $kind in
lock) user=run_lock kernel=futex_wait ;;
nagle) user=receive_both kernel=tcp_recvmsg ;;
esac
for function in $user $kernel schedule; do
    has "call of $function that spans the stall" "SELECT count(*) > 0 FROM calls WHERE function LIKE '$function%' AND thread_id = $stalled AND start_ns < $stall + 1000000 AND end_ns > $stall + 30000000"
done
has "off-CPU time" "SELECT count(*) > 0 FROM offcpu WHERE thread_id = $stalled AND end_ns - start_ns BETWEEN 30000000 AND 200000000"
has "wake-up" "SELECT waker IS NOT NULL AND waker <> '' FROM stalls WHERE id = (SELECT value FROM meta WHERE key = 'trigger_stall_id')"
has "calls after the stall" "SELECT count(*) > 0 FROM calls WHERE thread_id = $stalled AND start_ns > $stall + 35000000"
has "account of how the thread's ring was stopped" "SELECT count(*) = 1 FROM json_each((SELECT value FROM meta WHERE key = 'ring_stops'))
    WHERE json_extract(value, '$.tid') = (SELECT tid FROM threads WHERE id = $stalled) AND json_extract(value, '$.after_ns') > 0 AND json_extract(value, '$.after_bytes') > 0"
if [ "$kind" = nagle ]; then
    for function in tcp_delack_timer tcp_write_xmit; do
        grep -q $function report.out || fail "the report does not name $function" report.out
    done
    has "call of tcp_write_xmit" "SELECT count(*) > 0 FROM calls WHERE function = 'tcp_write_xmit' AND thread_id = $stalled"
fi
same_branches x
