#!/bin/bash
# A cell of matrix.table: a source, or watch, with a kind of trigger or an option, on a workload that stalls for 300 ms again and again.
# usage: matrix.sh SOURCE WHAT | matrix.sh all (whether the table is whole)
set -u
. "$SOURCE/tests/cli/lib.sh"
here=$SOURCE/tests/cli
source=$1 what=${2:-}

whole() {
    local kinds name sample step pt watch cell
    "$STALLTRAP" watch -p $$ --on nonsense 2>err
    kinds=$(sed -n 's/.*(there is: \(.*\)).*/\1/p' err | tr -d ' ' | tr , '\n')
    [ "$(wc -l <<<"$kinds")" -ge 13 ] || fail "the kinds of triggers are not found" err
    grep -v '^#' "$here/matrix.table" >rows
    for name in $kinds; do
        grep -q "^$name " rows || fail "the kind $name has no row in matrix.table"
    done
    ctest --test-dir "$BUILD" -N 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p' >tests
    [ -s tests ] || fail "no tests are found"
    while read -r name sample step pt watch; do
        [ -n "$watch" ] || fail "$name has an empty cell"
        for cell in $sample $step $pt $watch; do
            case $cell in
            run | -?*) ;;
            =?*) grep -qxF -- "${cell#=}" tests || fail "$name: there is no test ${cell#=}" ;;
            *) fail "$name: what is '$cell'" ;;
            esac
        done
    done <rows
}
if [ "$source" = all ]; then
    whole
    exit 0
fi

is_kind() { grep -qx "$what .*" <(bash "$here/kinds.sh" rows 2>/dev/null); }

[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }
if is_kind; then
    [ "$source" = watch ] || exec bash "$here/kinds.sh" "$what" "$source"
    read -r _ mode trigger _ < <(bash "$here/kinds.sh" rows | grep "^$what ")
else
    mode=sleep trigger='syscall:clock_nanosleep>250ms'
    [ "$what" != unprivileged ] || mode=compute # a sleeping thread is not sampled without privilege
fi

name=st-m-$$
workload=$work/$name
cp "$programs/kinds" "$workload" && cp "$BUILD/tests/user.bpf.o" . || fail "cp"
trigger=${trigger//WORKLOAD/$workload}
group=
trap 'cleanup; [ -z "$group" ] || rmdir "$group" 2>/dev/null' EXIT
as=()
[ "$what" != unprivileged ] || { chmod 755 "$work" && mkdir own && chown 65534:65534 own && as=(setpriv --reuid 65534 --regid 65534 --clear-groups); }
start "${as[@]}" "$workload" "$mode" >noted
target=$pid
[ "$mode" = hog ] || wait_for 60 grep -qx "$name" "/proc/$target/comm" || fail "the workload does not run"

find_group() {
    local root
    for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
        [ ! -e "$root/cgroup.controllers" ] || { group=$root/$name; mkdir "$group" && echo "$target" >"$group/cgroup.procs"; return; }
    done
    echo "skipped: no control groups (version 2)"
    exit 77
}
who=(-p "$target")
case $what in
comm) who=(--comm "$name") ;;
cgroup) find_group && who=(--cgroup "$group") || fail "no way into a control group" ;;
all) who=(-a) ;;
esac

measured() { # how many values the histogram has, after so many seconds
    "$STALLTRAP" watch "${who[@]}" --on "$trigger" --timeout "$1s" >out 2>err || fail "watch ends with $?" out err
    [ "$(sed -n 's/.*: \([0-9,]*\) measured$/\1/p' out | tr -d ,)" -gt 0 ]
}
arm_it() { # OPTION...
    "$STALLTRAP" arm --source "$source" "${who[@]}" --timeout 300s -o x "$@" >arm.out 2>arm.err || fail "arm $* ends with $?" arm.out arm.err
}
end_of_trap() { # DB: when the stall that fired had ended, in ns since the epoch
    sql "$1" "SELECT s.end_ns + (SELECT value FROM meta WHERE key = 'origin_perf_ns') + (SELECT value FROM meta WHERE key = 'wall_offset_ns')
        FROM stalls s JOIN meta m ON m.key = 'trigger_stall_id' AND m.value = s.id"
}

cell_unprivileged() {
    local refused=3
    cd own || exit 1
    if [ "$source" = watch ]; then
        "${as[@]}" "$STALLTRAP" watch "${who[@]}" --on "$trigger" >out 2>err
        [ $? = 3 ] && grep -q 'this process lacks CAP_BPF and CAP_PERFMON' err || fail "watch without privilege" out err
        return
    fi
    "${as[@]}" "$STALLTRAP" arm --source "$source" "${who[@]}" --on "$trigger" -o y >out 2>err
    [ $? = $refused ] && grep -q 'this process lacks CAP_BPF and CAP_PERFMON' err || fail "arm --on without privilege" out err
    if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
        echo "skipped: kernel.perf_event_paranoid forbids all of it"
        exit 77
    fi
    for seconds in 1 3 10 30 100; do
        "${as[@]}" "$STALLTRAP" arm --source "$source" "${who[@]}" --timeout ${seconds}s --at-end snapshot -o x$seconds >out 2>err || fail "one's own process: arm ends with $?" out err
        [ "$(sql x$seconds.1.db "SELECT count(*) > 0 FROM calls WHERE tid = $target AND NOT kernel")" != 1 ] || return 0
    done
    fail "no calls of one's own process"
}

cell_mark() {
    arm_it --on "$trigger" --mark tracepoint:syscalls:sys_enter_clock_nanosleep --warm-up 500ms
    [ "$(sql x.1.db "SELECT count(*) > 0 FROM mark m JOIN threads t ON t.id = m.thread_id WHERE t.tid = $target AND m.name GLOB '*sys_enter_clock_nanosleep*'")" = 1 ] ||
        fail "no marks: $(sql x.1.db 'SELECT DISTINCT name FROM mark')"
}
# Another stall has begun and ended behind the one that fired.
cell_after() {
    arm_it --on "$trigger" --after 4s
    [ "$(sql x.1.db "SELECT count(*) > 0 FROM offcpu o, stalls s, meta m WHERE m.key = 'trigger_stall_id' AND m.value = s.id
        AND o.start_ns > s.start_ns + 250000000 AND o.end_ns - o.start_ns > 250000000")" = 1 ] || fail "nothing of what came behind the trigger" arm.out
}
cell_cooldown() {
    local apart
    arm_it --on "$trigger" --snapshots 2 --cooldown 2s
    apart=$(($(end_of_trap x.2.db) - $(end_of_trap x.1.db)))
    [ $apart -ge 2000000000 ] || fail "the second trap came $apart ns behind the first" arm.out
}
of_target() { # the trap is of our thread, where no other is watched
    arm_it --on "$trigger" --warm-up 200ms
    grep -q "^trap 1: thread $target " arm.out || fail "the trap is not the workload's" arm.out
    [ "$(sql x.1.db "SELECT count(*) > 0 FROM calls WHERE tid = $target")" = 1 ] || fail "no calls of the workload"
}
cell_comm() { of_target; }
cell_cgroup() { of_target; }
cell_all() {
    if [ "$source" = step ]; then # it says so
        "$STALLTRAP" arm --source step -a --on "$trigger" -o x >arm.out 2>arm.err
        [ $? = 3 ] && grep -q 'source step cannot trace all processes' arm.err || fail "step with -a is not refused" arm.out arm.err
        return
    fi
    start_arm --source "$source" -a --on "$trigger" --snapshots 0 --keep-free 1M --no-decode -o x
    wait_for 300 grep -q "^trap [0-9]*: thread $target " arm.out || fail "no trap of the workload" arm.out arm.err
    kill -INT "$arm"
    end_of "$arm" 300 "arm -a"
    [ $status = 0 ] || fail "arm -a ends with $status" arm.out arm.err
}

if [ "$what" = unprivileged ]; then
    cell_unprivileged
elif [ "$source" = watch ]; then
    for seconds in 1 3 10 30 100; do
        ! measured $seconds || exit 0
    done
    fail "watch ${who[*]} --on '$trigger' has measured nothing" out err
else
    "cell_$what"
fi
exit 0
