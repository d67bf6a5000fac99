#!/bin/bash
# doctor: an answer for people and one for programs, whatever the machine can.
. "$(dirname "$0")/arm_lib.sh"

run "text"
"$STALLTRAP" doctor >out 2>err
is "exit status" 0 $?
is "stderr" "" "$(cat err)"
has "the source that is always there" '^yes +step ' out
has "Intel PT, or why not" '^(yes|no) +Intel PT' out
for what in 'kernel BTF' 'tp_btf' 'fentry' 'kprobes' 'uprobes' 'perf events' 'locked memory' 'capabilities' 'tracefs' 'ptrace' 'aux_pause'; do
    has "a finding about $what" "^(yes|no|-) .*$what" out
done

has "the verdict, first" '^- +in short +(arm (records|samples)|only --source step).*; triggers (work|do not work)' <(head -n 1 out)

run "on a terminal no line is wider than it, and no word is lost"
script -qec "stty cols 76; '$STALLTRAP' doctor" /dev/null </dev/null 2>err | tr -d '\r' >wrapped
is "too wide lines" "" "$(awk 'length($0) > 76 && / [^ ]+ [^ ]+ *$/ && substr($0, 41) ~ / /' wrapped)"
is "the words" "$(tr -s ' \n' '\n' <out | grep -v '^[0-9.]*$')" "$(tr -s ' \n' '\n' <wrapped | grep -v '^[0-9.]*$')"

run "json says the same"
"$STALLTRAP" doctor --json >json 2>err
is "exit status" 0 $?
python3 - >from-json <<'EOF' || fail "no valid JSON"
import json
d = json.load(open("json"))
assert d["version"]
keys = [f["key"] for f in d["findings"]]
assert len(keys) == len(set(keys)), "keys occur twice"
for f in d["findings"]:
    assert f["verdict"] in ("yes", "no", "info"), f
    assert f["label"] and f["detail"], f
    print(f["label"])
EOF
is "as many findings" "$(grep -Ec '^(yes|no|-) ' out)" "$(wc -l <from-json)"

run "it tells the truth about this machine"
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
has "perf_event_paranoid" "perf_event_paranoid is $paranoid" out
is "BTF" "$([ -e /sys/kernel/btf/vmlinux ] && echo yes || echo no)" "$(sed -n 's/^\(yes\|no\) *kernel BTF .*/\1/p' out)"
is "Intel PT" "$([ -e /sys/bus/event_source/devices/intel_pt ] && echo yes || echo no)" "$(sed -n 's/^\(yes\|no\) *Intel PT .*/\1/p' out)"

if [ "$(id -u)" = 0 ]; then
    has "context switches" '^- +context switches +[1-9][0-9]* traced in 0\.2 s, and [0-9]+ that this kernel did not trace' out
    run "without privilege"
    cp "$STALLTRAP" copy
    chmod 755 copy
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs ./copy doctor >out 2>err
    is "exit status" 0 $?
    has "BPF is not permitted" '^no +BPF on tracepoints .*not permitted' out
    has "the verdict" '^- +in short .*triggers do not work here: .*CAP_BPF' out
    has "what to do" '-> run as root, or with CAP_BPF and CAP_PERFMON' out
    has "capabilities" 'has: none' out
fi

# refused KEY TRIGGER COMMAND...: run by COMMAND, arm refuses TRIGGER with exit 3, and in the words of doctor's finding KEY
refused() {
    local key=$1 trigger=$2
    shift 2
    "$@" ./copy doctor --json >json 2>err || fail "doctor"
    python3 - "$key" >said <<'EOF'
import json, sys
for f in json.load(open("json"))["findings"]:
    if f["key"] == sys.argv[1] and f["verdict"] == "no":
        print(f["detail"] + ("\n  " + f["advice"] if f["advice"] else ""))
EOF
    [ -s said ] || fail "doctor has no finding '$key' that says no"
    "$@" ./copy arm --source sample --on "$trigger" --timeout 1s -o own/s -- sleep 2 >out 2>err
    is "exit status of arm --on $trigger" 3 $?
    is "arm and doctor say" "$(cat said)" "$(sed 's/^stalltrap arm: //' err)"
}

if [ "$(id -u)" = 0 ] && unshare --mount --pid --fork true 2>/dev/null; then
    # FOLDER COMMAND...: something empty lies over it, for the command alone
    hiding() { unshare --mount bash -c 'mount -t tmpfs none "$1" && shift && exec "$@"' - "$@"; }
    no_tracefs() {
        unshare --mount bash -c 'umount -R /sys/kernel/debug 2>/dev/null; umount -R /sys/kernel/tracing; exec "$@"' - "$@"
    }
    mkdir -m 777 own
    run "arm refuses in the words of doctor: without privilege"
    refused triggers 'offcpu>20ms' setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs
    run "arm refuses in the words of doctor: in a pid name space"
    refused triggers 'offcpu>20ms' unshare --mount --pid --fork --mount-proc
    has "what to do" 'run stalltrap on the host' said
    run "arm refuses in the words of doctor: without BTF"
    refused triggers 'offcpu>20ms' hiding /sys/kernel/btf
    has "what lacks" 'CONFIG_DEBUG_INFO_BTF' said
    run "arm refuses in the words of doctor: without tracefs"
    refused tracefs 'tracepoint:syscalls:sys_enter_getppid' no_tracefs
fi

run "wrong use"
"$STALLTRAP" doctor please >out 2>err
is "exit status" 2 $?

summary
