#!/bin/bash
# In the fresh machine: the installed program, away from its source tree. With `trap`: only a trap.
set -euo pipefail
fail() {
    echo "FAILED: $1 (up $(cut -d' ' -f1 /proc/uptime) s)" >&2
    shift
    tail -n 30 "$@" >&2
    exit 1
}
work=$(mktemp -d)
cd "$work"
bash -c 'while :; do sleep 0.2; done' &
looper=$!
trap 'kill $looper; rm -rf "$work"' EXIT

stalltrap arm --source sample -p $looper --on 'offcpu>20ms,idle=yes' --timeout 60s >out 2>&1 || fail "arm --source sample ends with $?" out
grep -q '^trap 1: thread .* off-CPU' out || fail "no trap" out
stalltrap report stalltrap.1.db >out 2>&1 || fail "report ends with $?" out
grep -q 'how long ' out || fail "report does not tell of the stall" out
[ "${1:-}" != trap ] || exit 0

stalltrap doctor >out 2>&1 || fail "doctor ends with $?" out
grep -q '^yes  sample ' out || fail "doctor has no source sample" out
stalltrap view stalltrap.1.db --screen - --size 90x24 >out 2>&1 || fail "view ends with $?" out
[ "$(wc -l <out)" = 24 ] || fail "view does not draw 24 rows" out
for format in perfetto chrome folded speedscope svg html; do
    stalltrap export stalltrap.1.db --to $format -o "out.$format" 2>err || fail "export --to $format ends with $?" err
    [ -e out.$format ] || fail "export --to $format writes nothing" err
done
stalltrap watch --on 'offcpu>1ms,idle=yes' -- sleep 0.3 >out 2>&1 || fail "watch ends with $?" out
grep -Eq 'time off the CPU: [1-9]' out || fail "watch measured nothing" out
# Each kind of trigger is taken by the kernel, as this compiler built it.
for trigger in 'offcpu>1s' 'runq>1s' 'busy>1s' 'syscall>1s' 'func:libc!malloc>1s' 'call:libc!malloc' 'quiet:sched:sched_switch>1m' 'socket>1s' \
    'irq>1s' 'softirq>1s' 'tracepoint:sched:sched_switch,if=prev_comm=="nobody"&&prev_state==2'; do
    stalltrap watch --on "$trigger" -- true >out 2>&1 || fail "watch --on $trigger ends with $?" out
done
stalltrap arm --source step -- ls >out 2>&1 || fail "arm --source step ends with $?" out
[ "$(stalltrap query stalltrap.2.db "SELECT count(*) > 100 FROM calls" --format csv | tail -1)" = 1 ] || fail "few calls of ls" out

# The header that was installed, with the documented program and command.
page=/usr/local/share/doc/stalltrap/triggers.md
sed -n '/^## bpf$/,/^## bpftrace$/{/^    #include <linux.bpf.h>/,/^    }/s/^    //p}' $page >yields.bpf.c
command=$(sed -n 's/^    \(clang .*-target bpf.*\)/\1/p' $page)
[ -s yields.bpf.c ] && [ -n "$command" ] || fail "triggers.md has no program, or no command to compile it" yields.bpf.c
eval "$command" 2>err || fail "$command" err
stalltrap watch --on bpf:yields.o -- true >out 2>&1 || fail "watch --on bpf:yields.o ends with $?" out
cp yields.o /root/fresh/
