#!/bin/bash
# An ordinary user records a process of their own, without any privilege: Ctrl-C, SIGUSR2 and `snap` take snapshots; what needs a
# privilege says so and ends with 3.
. "$(dirname "$0")/arm_lib.sh"

# From here on "$STALLTRAP" and the targets run as nobody, who can reach a copy in this folder only.
if [ "$(id -u)" = 0 ]; then
    cp "$STALLTRAP" ./stalltrap-copy
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs "$@"\n' >as_user
    printf '#!/bin/sh\nexec %s/as_user %s/stalltrap-copy "$@"\n' "$work" "$work" >stalltrap
    chmod 755 as_user stalltrap stalltrap-copy
    STALLTRAP=$work/stalltrap
    user=65534
    mkdir mine
    chown 65534 mine
    cd mine || exit 1
else
    printf '#!/bin/sh\nexec "$@"\n' >as_user
    chmod 755 as_user
    user=$(id -u)
fi
unset XDG_RUNTIME_DIR

start_own() {
    "$work/as_user" "$work/arm_target" "$@" >/dev/null &
    target=$!
    disown "$target"
    started+=("$target")
    wait_for "the target" grep -qx arm_target "/proc/$target/comm"
}

if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
    run "a machine that lets users have no perf events says so"
    "$STALLTRAP" arm --source step -o mine -- "$work/arm_target" end 1 1 >out 2>err
    status=$?
    if [ $status != 0 ]; then # level 3 and up mean this only to kernels of some distributions
        is "exit status" 3 $status
        has "why" 'kernel\.perf_event_paranoid is [3-9]' err
        has "what to do" 'CAP_PERFMON' err
        is "files" "" "$(ls mine* 2>/dev/null)"
        summary
    fi
    rm -f mine*
fi

run "one's own process: snap, SIGUSR2, Ctrl-C"
start_own idle 20
arm --no-decode -o mine -p "$target"
"$STALLTRAP" snap "$target" >snap.out 2>snap.err
is "exit status of snap" 0 $?
has "answer" '/mine\.1\.data$' snap.out
perf_reads mine.1.data
snapshots=1
has_calls() { # a snapshot on SIGUSR2; the first ones may come before the target has done anything
    snapshots=$((snapshots + 1))
    kill -USR2 "$arm"
    wait_for "snapshot $snapshots" test -e mine.$snapshots.data
    perf_reads mine.$snapshots.data
    grep -q '=> .* target_leaf+0x0 ' perf.calls
}
wait_for "calls in a snapshot on SIGUSR2" has_calls
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
snapshots=$((snapshots + 1))
has "result" "^wrote mine\\.$snapshots\\.data\$" out
perf_reads mine.$snapshots.data
has "calls in the snapshot on Ctrl-C" '=> .* target_leaf\+0x0 ' perf.calls
is "owner and mode" "$user 600" "$(stat -c '%u %a' mine.$snapshots.data)"
alive "$target" || fail "the target did not survive"
no_leftovers

run "one's own command, to the database"
"$STALLTRAP" arm --source step -o cmd -- "$work/arm_target" end 5 10 >out 2>err
is "exit status" 0 $?
has "result" '^wrote cmd\.1\.data, cmd\.1\.db \([0-9,]+ calls, ' out
is "calls of target_leaf" 20 "$("$STALLTRAP" query cmd.1.db "SELECT count(*) AS n FROM calls WHERE function = 'target_leaf'" --format csv | tail -1)"

run "arm dies of SIGKILL: the target does not notice"
arm --no-decode -o killed -p "$target"
kill -KILL "$arm"
wait "$arm" 2>/dev/null
wait_for "the stepping helper to let go" grep -q '^TracerPid:[[:space:]]*0$' "/proc/$target/status"
alive "$target" || fail "the target did not survive"

if [ "$user" = 65534 ]; then
    run "a trigger needs BPF: exit 3, and what works instead"
    "$STALLTRAP" arm --source step -p "$target" --on 'offcpu>20ms' -o trigger >out 2>err
    is "exit status" 3 $?
    has "what lacks" '--on needs BPF, and this process lacks CAP_BPF' err
    has "what works" 'without --on: Ctrl-C, SIGUSR2 and .snap.' err
    is "files" "" "$(ls trigger* 2>/dev/null)"

    run "a process of another user: exit 3"
    start_target idle 20
    "$STALLTRAP" arm --source step -p "$target" -o other >out 2>err
    is "exit status" 3 $?
    has "why" "no permission to record process $target" err
    has "what to do" 'run as root, or with CAP_SYS_PTRACE' err
    is "files" "" "$(ls other* 2>/dev/null)"

    run "doctor says the same"
    "$STALLTRAP" doctor >out 2>err
    has "step" '^yes +step ' out
    has "BPF" '^no +BPF on tracepoints' out
    has "ptrace" '^(yes|no) +ptrace ' out
fi
summary
