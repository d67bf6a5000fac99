# guest_triggers.sh SOURCE BUILD [short]: every kind of trigger on a kernel that has fentry and kprobes, beside an independent observer; then
# without fentry, then without kprobes too: the next best hook sees the same, the armed line and doctor say which, and where none is left
# arm says why and ends with 3. short: only the kinds that name a function of the
# kernel, by each hook, and fewer stalls. Unsent data are seen by a tracepoint from Linux 6.3, before by one of the two.
source=$1 build=$2 short=${3:-}
truth=$build/tests/unit_triggers_truth
stalltrap=$build/stalltrap
export TRUTH_ALL=1 TRUTH_NOISE=2 TRUTH_SCALE=4 TRUTH_SOCKETS=30 TRUTH_FOLDER=$PTVM_OUT
everything=('*') hooked=('*kernel*' 'socket*unsent')
if [ -n "$short" ]; then
    export TRUTH_COUNT=4
    everything=('*kernel*') hooked=('*kernel*')
fi
cd "$PTVM_OUT"

fail() {
    echo "FAILED: $1"
    shift
    [ $# -eq 0 ] || tail -n 40 "$@"
    exit 1
}

# run_truth HOOK TEST...: what fails is tried twice more: the host's other work stops the emulated processors at any time
run_truth() {
    local hook=$1 test try failed again passed
    shift
    for test; do
        TRUTH_HOOK=$hook timeout 900 "$truth" "$test" >truth.out 2>&1
        grep '^truth: ' truth.out
        mapfile -t failed < <(sed -n 's/^\[  FAILED  \] //p' truth.out | grep -v 'listed below' | sort -u)
        grep -q 'test(s) run\.' truth.out || fail "$test" truth.out
        # Nothing lacks here but slow handlers; what was skipped says what does.
        ! grep '^skipped: ' truth.out | grep -v 'has no handlers that take so long' || fail "$test: skipped" truth.out
        [ ${#failed[@]} -gt 0 ] || grep -q '^truth: ' truth.out || fail "$test: no row was judged" truth.out
        case ${#failed[@]}$test in 0'*' | 0'*kernel*') grep -q "^truth: .* by $hook: " truth.out || fail "$test: no row by $hook" truth.out ;; esac
        for again in "${failed[@]}"; do
            passed=
            for try in 2 3; do
                grep -A 1 '^ERROR' truth.out
                TRUTH_HOOK=$hook timeout 100 "$truth" "$again" >truth.out 2>&1 && passed=1 && break
            done
            [ -n "$passed" ] || fail "$again, $try times" truth.out
            grep '^truth: ' truth.out
        done
    done
}

# armed_by HOOK TRIGGER: the armed line says so
armed_by() {
    "$stalltrap" arm --source sample -p $$ --on "$2" --no-decode --timeout 100ms >arm.out 2>arm.err
    [ $? -eq 4 ] || fail "arm --on $2" arm.err
    grep -F "$2 (by $1)" arm.err || fail "the armed line of $2 does not say $1" arm.err
}

# doctor_says VERDICT HOOK: of functions of the kernel
doctor_says() {
    "$stalltrap" doctor >doctor.out || fail "doctor" doctor.out
    grep -E "^$1 +kernel functions .*$2" doctor.out || fail "doctor does not say $2 of functions" doctor.out
    grep -E "^(yes|no) +unsent data .*$unsent" doctor.out || fail "doctor does not say $unsent of unsent data" doctor.out
}

set +e
grep -qw bpf_trace_sock_send_length /proc/kallsyms || grep -qw __tracepoint_sock_send_length /proc/kallsyms && newer=1 || newer=
function='func:kernel!__x64_sys_recvfrom>20ms'
unsent=${newer:+tracepoint}
unsent=${unsent:-fentry}
run_truth fentry "${everything[@]}"
armed_by fentry "$function"
armed_by "$unsent" 'socket>20ms'
doctor_says yes fentry

export LD_PRELOAD=$build/tests/ptvm/libhide_fentry.so
unsent=${newer:+tracepoint}
unsent=${unsent:-kprobe}
run_truth kprobe "${hooked[@]}"
armed_by kprobe "$function"
armed_by "$unsent" 'socket>20ms'
doctor_says yes kprobe

mount -t tmpfs none /sys/devices/kprobe || fail "kprobes cannot be hidden"
unsent=${newer:+tracepoint}
unsent=${unsent:-neither}
doctor_says no neither
for trigger in "$function" 'call:kernel!__x64_sys_getppid' 'quiet:kernel!__x64_sys_getppid>1s' ${newer:-'socket>20ms'}; do
    [ "$trigger" != 1 ] || continue
    "$stalltrap" arm --source sample -p $$ --on "$trigger" --no-decode --timeout 100ms >arm.out 2>arm.err
    [ $? -eq 3 ] || fail "$trigger without any hook: not exit 3" arm.err
    grep 'neither fentry nor kprobes' arm.err || fail "$trigger: the reason is missing" arm.err
done
"$stalltrap" arm --source sample -p $$ --on 'socket>20ms,side=unread' --no-decode --timeout 100ms >arm.out 2>arm.err
[ $? -eq 4 ] || fail "side=unread needs none of them" arm.err
echo "triggers: as expected on $(uname -r)"
