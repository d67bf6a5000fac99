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

run "wrong use"
"$STALLTRAP" doctor please >out 2>err
is "exit status" 2 $?

summary
