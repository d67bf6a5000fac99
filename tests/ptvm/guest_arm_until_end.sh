# guest_arm_until_end.sh SOURCE BUILD: a thread that is quiet, and then off its CPU for two seconds. The ring stops when that is noticed,
# and the snapshot is written when it is over: it knows the end and the waker, and of what was before the stall no call is lost; nor is
# there one that was made later. File: arm-lib.sh.
. ./arm-lib.sh "$@"
stall="(SELECT value FROM meta WHERE key = 'trigger_stall_id')"
stalled="(SELECT thread_id FROM stalls WHERE id = $stall)"

trap_quiet() { # NAME ARM-OPTION...
    local name=$1
    shift
    start "$quiet" 2 2000 >ready.out
    target=$pid
    wait_for 30 grep -qx ready ready.out || fail "quiet does not begin"
    start_arm --source intel-pt --no-kernel -p "$target" --rings thread --ring 64K --on 'offcpu>20ms,state=sleeping' --no-decode -o "$name" "$@"
    kill -USR1 "$target"
    end_of "$arm" 120 "arm"
    [ $status -eq 0 ] || fail "$name: arm ends with $status" arm.out arm.err
    cat arm.out
    kill -KILL "$target"
    "$STALLTRAP" decode "$name.1.data" -o "$name.1.db" >/dev/null 2>arm.err || fail "$name: decode" arm.err
    [ "$(sql "$name.1.db" "SELECT count(*) FROM calls WHERE thread_id = $stalled AND function IN ('tick', 'tock') AND flags & 3 = 0
        AND start_ns < (SELECT start_ns FROM stalls WHERE id = $stall)")" = 1500 ] ||
        fail "$name: the quiet thread's 1500 calls before its stall are not all there"
}

trap_quiet at_once --until-end 0
[ "$(sql at_once.1.db "SELECT end_ns IS NULL FROM stalls WHERE id = $stall")" = 1 ] || fail "--until-end 0: the end is known" arm.out
trap_quiet at_end --until-end 1m
[ "$(sql at_end.1.db "SELECT end_ns IS NOT NULL AND duration_ns BETWEEN 1900000000 AND 60000000000 AND waker LIKE 'thread $target %'
    FROM stalls WHERE id = $stall")" = 1 ] ||
    fail "the end is not known: $(sql at_end.1.db "SELECT duration_ns, waker FROM stalls WHERE id = $stall")" arm.out
for name in at_once at_end; do
    [ "$(sql $name.1.db "SELECT count(*) > 100 AND max(start_ns) < (SELECT start_ns + 1900000000 FROM stalls WHERE id = $stall) FROM calls
        WHERE function = 'spin'")" = 1 ] || fail "$name: the busy threads' rings did not stop when the stall was noticed"
done
echo "1500 calls before the stall, written at once and at its end"
