# guest_arm_unprivileged.sh SOURCE BUILD: a user without privilege records his own processes at perf_event_paranoid 2; what he lacks for
# more is named, exit 3. File: arm-lib.sh.
. ./arm-lib.sh "$@"
user=65534
chmod 755 "$work"
mkdir mine && chown $user mine && cd mine || exit 1
echo 2 >/proc/sys/kernel/perf_event_paranoid
echo 1 >/proc/sys/kernel/kptr_restrict

as_user() { # COMMAND...; only for background use: takes the shell's place
    ulimit -l 64
    exec setpriv --reuid=$user --regid=$user --clear-groups --inh-caps=-all env XDG_RUNTIME_DIR="$PWD" HOME="$PWD" "$@"
}

refused() { # PATTERN ARM-OPTION...: exit 3 and a message that names what lacks
    local pattern=$1
    shift
    (as_user "$STALLTRAP" arm "$@" --timeout 2s -o no) >no.out 2>no.err
    status=$?
    [ $status -eq 3 ] || fail "arm $*: exit $status, not 3" no.out no.err
    grep -q -e "$pattern" no.err || fail "arm $*: the message does not say '$pattern'" no.err
    [ -z "$(ls no.[0-9]* 2>/dev/null)" ] || fail "arm $*: refused, and wrote a snapshot"
}

start as_user "$nest" 2000000000
own=$pid
sleep 0.2
ask_doctor as_user
doctor_says '^source\.intel-pt yes ' '^perf\.paranoid .*perf_event_paranoid is 2' '^perf\.mlock info 64 KiB' '^capabilities info .*lacks: CAP_PERFMON CAP_BPF' \
    '^bpf\.tp_btf no .*CAP_BPF'

echo "doctor knows"

# His own process: SIGUSR2, snap, Ctrl-C.
start as_user "$STALLTRAP" arm --source auto --no-kernel -o own -p "$own" --ready-fd 9 9>ready >arm.out 2>arm.err
arm=$pid
wait_for 60 armed_or_gone
grep -qx armed ready || fail "not armed" arm.out arm.err
grep -q 'armed: intel-pt, user, .* a thread (the memory limits allow no 4 MiB), 1 thread' arm.err || fail "the armed line" arm.err
kill -USR2 "$arm"
wait_for 60 test -e own.1.db || fail "no snapshot on SIGUSR2" arm.out arm.err
(as_user "$STALLTRAP" snap "$own") >snap.out 2>&1 || fail "snap" snap.out
wait_for 60 test -e own.2.db || fail "no snapshot by snap" arm.out arm.err
kill -INT "$arm"
end_of "$arm" 60 arm
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
for n in 1 2 3; do
    [ "$(sql own.$n.db "SELECT calls > 100 FROM functions WHERE function = 'leaf'")" = 1 ] || fail "own.$n: few calls of leaf"
done

echo "his own process is recorded"

refused 'CAP_PERFMON\|CAP_SYS_RAWIO' --source intel-pt --kernel -p "$own"
refused 'CAP_BPF' --source intel-pt --no-kernel -p "$own" --on 'offcpu>20ms'
refused 'CAP_SYS_PTRACE\|CAP_PERFMON' --source intel-pt --no-kernel -p $$
refused 'perf_event_paranoid' --source intel-pt --no-kernel -a
echo 3 >/proc/sys/kernel/perf_event_paranoid
ask_doctor as_user
doctor_says '^source\.intel-pt no .*perf_event_paranoid is 3'
refused 'perf_event_paranoid is 3' --source intel-pt --no-kernel -p "$own"
echo 2 >/proc/sys/kernel/perf_event_paranoid

echo "refused as it should be"

# Somebody else's Intel PT on the process.
start perf record -q -e intel_pt//u -o /run/other.data -p "$own"
other=$pid
maps_events() { grep -qs 'anon_inode:\[perf_event\]' "/proc/$other/maps"; }
wait_for 60 maps_events || fail "perf record has not begun"
refused 'in use' --source intel-pt --no-kernel -p "$own"
kill -INT "$other"
end_of "$other" 60 perf
