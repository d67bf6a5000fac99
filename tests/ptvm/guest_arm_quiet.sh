# guest_arm_quiet.sh SOURCE BUILD: eight threads, seven of them busy. The history of the quiet one up to its stall is there where it has a
# ring of its own; in rings of CPUs the others have overwritten it, and a gap tells from when its history is. File: arm-lib.sh.
. ./arm-lib.sh "$@"
stall="(SELECT value FROM meta WHERE key = 'trigger_stall_id')"
stalled="(SELECT thread_id FROM stalls WHERE id = $stall)"

trap_quiet() { # RINGS RING-SIZE
    start "$quiet" 7 >ready.out
    target=$pid
    wait_for 30 grep -qx ready ready.out || fail "quiet does not begin"
    start_arm --source intel-pt --no-kernel -p "$target" --rings "$1" --ring "$2" --on 'offcpu>20ms,state=sleeping' --no-decode -o "$1"
    cat arm.err
    [ "$1" = cpu ] || grep -q '8 threads' arm.err || fail "$1: not 8 threads" arm.err
    kill -USR1 "$target"
    end_of "$arm" 120 "arm"
    [ $status -eq 0 ] || fail "$1: arm ends with $status" arm.out arm.err
    cat arm.out
    kill -KILL "$target"
    "$STALLTRAP" decode "$1.1.data" -o "$1.1.db" >/dev/null 2>arm.err || fail "$1: decode" arm.err
}

trap_quiet thread 64K
[ "$(sql thread.1.db "SELECT count(*) || ',' || sum(function = CASE n % 2 WHEN 1 THEN 'tick' ELSE 'tock' END) || ',' || sum(flags)
    FROM (SELECT function, flags & 3 AS flags, row_number() OVER (ORDER BY id) AS n FROM calls
        WHERE thread_id = $stalled AND function IN ('tick', 'tock') AND start_ns < (SELECT start_ns FROM stalls WHERE id = $stall))")" = '"1500,1500,0"' ] ||
    fail "a ring a thread: the quiet thread's 1500 calls before its stall are not all there: $(sql thread.1.db "SELECT function, count(*) FROM calls WHERE thread_id = $stalled GROUP BY 1")"
[ "$(sql thread.1.db "SELECT min(n) > 100 AND count(*) = 7 FROM (SELECT count(*) AS n FROM calls WHERE function = 'spin' GROUP BY tid)")" = 1 ] ||
    fail "a ring a thread: not seven busy threads"
echo "a ring a thread: the quiet thread's 1500 calls before its stall are there"

trap_quiet cpu 64K
[ "$(sql cpu.1.db "SELECT count(*) FROM calls WHERE thread_id = $stalled AND function IN ('tick', 'tock')")" -lt 1500 ] ||
    fail "rings of CPUs: the busy threads have overwritten nothing: the test shows nothing"
# From the gap's end on the thread's calls are there, if there are any, and not before.
[ "$(sql cpu.1.db "SELECT count(*) FROM gaps g WHERE g.thread_id = $stalled AND g.reason = 'overwritten' AND g.end_ns > g.start_ns
    AND g.end_ns <= coalesce((SELECT min(start_ns) FROM calls WHERE thread_id = g.thread_id), g.end_ns)")" = 1 ] ||
    fail "rings of CPUs: no gap tells from when the quiet thread's history is: $(gaps_of cpu)"
echo "rings of CPUs: $(sql cpu.1.db "SELECT reason || ' until ' || end_ns FROM gaps WHERE thread_id = $stalled AND reason = 'overwritten'")"
