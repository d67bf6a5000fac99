# guest_arm_privileges.sh SOURCE BUILD: a user who is not root and has the capabilities that the whole job needs does it, on another
# user's process: user and kernel code, and a trigger. When one of them lacks, arm says which, exit 3. File: arm-lib.sh.
. ./arm-lib.sh "$@"
user=65534
needed="perfmon bpf sys_ptrace syslog sys_rawio dac_read_search"
chmod 755 "$work"
mkdir mine && chown $user mine && cd mine || exit 1
echo 2 >/proc/sys/kernel/perf_event_paranoid
echo 1 >/proc/sys/kernel/kptr_restrict

with() { # CAPABILITIES COMMAND...: takes the shell's place
    local caps=-all cap
    for cap in $1; do caps=$caps,+$cap; done
    shift
    ulimit -l 64
    exec setpriv --reuid=$user --regid=$user --clear-groups --inh-caps="$caps" --ambient-caps="$caps" env XDG_RUNTIME_DIR="$PWD" HOME="$PWD" "$@"
}

start "$nest" 2000000000
target=$pid
start with "$needed" "$STALLTRAP" arm --source intel-pt --kernel -p "$target" --on 'offcpu>100s' -o all --ready-fd 9 9>ready >arm.out 2>arm.err
arm=$pid
wait_for 120 armed_or_gone
grep -qx armed ready || fail "with $needed: not armed" arm.out arm.err
cat arm.err
kill -INT "$arm"
end_of "$arm" 120 arm
[ $status -eq 0 ] || fail "with $needed: arm ends with $status" arm.out arm.err
[ "$(sql all.1.db "SELECT (SELECT calls > 100 FROM functions WHERE function = 'leaf') AND (SELECT count(*) > 0 FROM calls WHERE kernel)")" = 1 ] || fail "with $needed: no user and kernel calls"
same_branches all

for lacks in $needed; do
    has=
    for cap in $needed; do [ "$cap" = "$lacks" ] || has="$has $cap"; done
    (with "$has" timeout 60 "$STALLTRAP" arm --source intel-pt --kernel -p "$target" --on 'offcpu>100s' --timeout 1s -o no) >no.out 2>no.err
    status=$?
    [ $status -eq 3 ] || fail "without $lacks: exit $status, not 3" no.out no.err
    grep -q "CAP_${lacks^^}" no.err || fail "without $lacks: the message does not name it" no.err
    [ -z "$(ls no.[0-9]* 2>/dev/null)" ] || fail "without $lacks: refused, and wrote a snapshot"
    echo "without $lacks: $(tr '\n' ' ' <no.err | cut -c 1-200)"
done
