# guest_arm_user.sh SOURCE BUILD: `arm --source intel-pt --no-kernel` on programs whose calls are known. File:
# arm-lib.sh.
. ./arm-lib.sh "$@"

ask_doctor env
doctor_says '^source\.intel-pt yes ' '^intel_pt\.kcore yes ' '^bpf\.btf yes ' '^bpf\.fentry yes ' '^kprobe yes ' '^capabilities info .*CAP_PERFMON'
for cap in mtc psb_cyc cycle_thresholds psb_periods; do doctor_says "^intel_pt\.caps info (.* )?$cap="; done
for format in cyc mtc_period noretcomp psb_period branch; do doctor_says "^intel_pt\.format info (.* )?$format=config:"; done
case $(uname -r) in
[1-5].* | 6.[0-9].* | 6.1[012].*) doctor_says '^intel_pt\.aux_pause no .*6\.13' ;;
*) doctor_says '^intel_pt\.aux_pause yes ' ;;
esac

# A command, from its first to its last instruction.
for rings in cpu thread; do
    arm_nest 300 whole-$rings --no-kernel --rings $rings
    same_calls whole-$rings
    nest_calls whole-$rings 300
    no_gaps whole-$rings
done

# A ring that wraps many times: the last calls are exact.
arm_nest 5000 wrapped --no-kernel --rings thread --ring 64K
same_branches wrapped
nest_calls wrapped 5000 1000
gaps_of wrapped | grep -q overwritten || fail "no gap tells that the ring was overwritten: $(gaps_of wrapped)"

# A process that runs already: snapshots by SIGUSR2 and `snap`, then Ctrl-C.
start "$nest" 2000000000
target=$pid
start_arm --source intel-pt --no-kernel -o attached --ring 64K -p "$target"

# Nobody wakes the recorder while nothing happens, however much is traced.
wakeups() { awk '/^(non)?voluntary_ctxt_switches/ {n += $2} END {print n}' "/proc/$arm/status"; }
before=$(wakeups)
sleep 3
[ $(($(wakeups) - before)) -lt 30 ] || fail "$(($(wakeups) - before)) wake-ups in 3 s on a quiet target"

kill -USR2 "$arm"
wait_for 60 test -e attached.1.db || fail "no snapshot on SIGUSR2" arm.out arm.err
"$STALLTRAP" snap "$target" >snap.out || fail "snap" snap.out arm.err
kill -INT "$arm"
end_of "$arm" 60 "arm -p"
[ $status -eq 0 ] || fail "arm -p ends with $status" arm.out arm.err
running "$target" || fail "the target has ended"
for n in 1 2 3; do
    outside attached.$n.data branches
    [ "$(sql attached.$n.db "SELECT calls > 100 FROM functions WHERE function = 'leaf'")" = 1 ] || fail "attached.$n: few calls of leaf in the database"
done
kill -KILL "$target"

# A later snapshot says that an earlier one's time is missing in it; the calls before and after are there. A short pause, in which
# the target had no CPU anyway, is none.
start "$slow"
target=$pid
start_arm --source intel-pt --no-kernel -o paused --ring 1M -p "$target"
for n in 1 2; do
    sleep 0.3
    kill -USR2 "$arm"
    wait_for 60 test -e paused.$n.db || fail "no snapshot on SIGUSR2" arm.out arm.err
done
kill -INT "$arm"
end_of "$arm" 60 "arm -p"
[ "$(sql paused.1.db "SELECT count(*) FROM gaps WHERE reason = 'paused'")" = 0 ] || fail "a pause before the first snapshot: $(sql paused.1.db "SELECT * FROM gaps")"
[ "$(sql paused.3.db "SELECT count(*) FROM gaps g WHERE reason = 'paused' AND end_ns > start_ns AND
    EXISTS (SELECT 1 FROM calls WHERE function = 'beat' AND end_ns <= g.start_ns AND flags & 3 = 0) AND
    EXISTS (SELECT 1 FROM calls WHERE function = 'beat' AND start_ns >= g.end_ns AND flags & 3 = 0) AND
    NOT EXISTS (SELECT 1 FROM calls WHERE function = 'beat' AND start_ns < g.start_ns AND end_ns > g.end_ns)")" -ge 1 ] ||
    fail "two earlier snapshots are no gap: $(sql paused.3.db "SELECT * FROM gaps")"
echo "pauses: $(sql paused.3.db "SELECT group_concat(end_ns - start_ns || ' ns') FROM gaps WHERE reason = 'paused'")"
