#!/bin/bash
# Processes that come into the target when arm waits already: into a cgroup (moved there, or born in it, or in one below), to a name. Each is
# recorded, with its code, its name and the calls before its stall, and what was not recorded of it is a gap. arm goes on when the first ones
# have ended, and ends with the cgroup.
# usage: comers.sh sample|thread|cpu|step|many|ends|watch|user|old
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: cgroups and BPF need root"; exit 77; }

root=
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ ! -e $folder/cgroup.controllers ] || root=$folder
done
[ -n "$root" ] || { echo "skipped: no cgroups of version 2"; exit 77; }
name=st-come-$$ # 15 characters at most
group=$root/$name
removed() { # FOLDER: ends who is in it, as often as it takes
    local in
    mapfile -t in <"$1/cgroup.procs"
    [ "${#in[@]}" = 0 ] || kill -KILL "${in[@]}" 2>/dev/null
    rmdir "$1" 2>/dev/null
}
remove_groups() {
    local g
    for g in "$group/below" "$group"; do
        [ ! -d "$g" ] || wait_for 60 removed "$g"
    done
}
trap 'remove_groups; cleanup' EXIT
mkdir "$group" || { echo "skipped: no cgroup can be made"; exit 77; }
cp "$programs/comer" "$work/$name" || fail "cp"
trigger='syscall:clock_nanosleep>250ms'

comer() { # MODE...: begins one outside, which waits for a word; its pid is $comer
    rm -f said
    start "$work/$name" "$@" >said
    comer=$pid
    wait_for 60 grep -qsx ready said || fail "the workload does not wait" said
}
move_in() { echo "$1" >"$group/cgroup.procs" || fail "$1 cannot be moved"; }
recorded() { # DB TID: a call in which it computed before the stall, and the wait itself, in the program's own code; its names; what is missing
    [ "$(sql "$1" "SELECT count(*) > 0 FROM calls WHERE tid = $2 AND function = 'compute_here' AND module GLOB '*$name'")" = 1 ] ||
        fail "$source: nothing of what $2 computed" arm.out arm.err
    [ "$(sql "$1" "SELECT group_concat(DISTINCT name || ' ' || process) FROM threads WHERE tid = $2")" = "$name $name" ] ||
        fail "$source: $2 is not named: $(sql "$1" "SELECT * FROM threads")"
}
missing_before() { # DB TID: it was there before it was recorded
    [ "$(sql "$1" "SELECT count(*) > 0 FROM gaps g JOIN threads t ON t.id = g.thread_id WHERE t.tid = $2 AND g.reason IN ('not attached', 'overwritten')")" = 1 ] ||
        fail "$source: no gap before $2 came: $(sql "$1" "SELECT * FROM gaps")"
}
fires() { # N TID: and its snapshot is written, the one of the number N
    wait_for 300 grep -q "^trap [0-9]*: thread $2 " arm.out || fail "$source: no trap of $2" arm.out arm.err
    wait_for 300 grep -q "^wrote .*x.$1.db" arm.out || fail "$source: no snapshot $1" arm.out arm.err
}

snapped() { "$STALLTRAP" snap "$1" >snap.out 2>snap.err; }
found() { wait_for 60 snapped "$1" || fail "$source: it does not find $1" snap.err arm.err; } # it is recorded from here on

cgroup_of() { # SOURCE OPTION...
    local first
    source="$*"
    rm -f x.*
    start_arm --source "$@" --cgroup "$group" --on "$trigger" --snapshots 2 -o x
    grep -q "no process is in cgroup $group yet: those that come" arm.err || fail "$source: who is waited for" arm.err

    comer stall # a process that was there before, moved
    first=$comer
    move_in "$comer"
    found "$comer"
    kill -USR1 "$comer"
    fires 2 "$comer"
    recorded x.2.db "$comer"
    missing_before x.2.db "$comer"
    [ "$(sql x.2.db "SELECT value LIKE '--cgroup $group (%$comer%)' FROM meta WHERE key = 'target'")" = 1 ] || fail "$source: meta does not name it"
    kill -KILL "$first" # arm goes on; the next is born in a cgroup below
    wait_end "$first" 60
    mkdir -p "$group/below" || fail "mkdir"
    rm -f said
    start "$programs/comer" into "$group/below" "$work/$name" stall >said
    wait_for 60 grep -qsx ready said && wait_for 60 grep -qs '^pid' said || fail "no workload in the cgroup below" said
    comer=$(sed -n 's/^pid //p' said)
    found "$comer"
    kill -USR1 "$comer"
    fires 4 "$comer"
    end_of "$arm" 300 arm
    [ "$status" = 0 ] || fail "$source: arm ends with $status" arm.out arm.err
    recorded x.4.db "$comer"
    kill -KILL "$comer"
    wait_end "$pid" 60
}

# To a name: nobody has it when arm begins.
comm_of() { # SOURCE OPTION...
    source="$*"
    rm -f x.*
    start_arm --source "$@" --comm "$name" --on "$trigger" --snapshots 2 -o x
    grep -q "no process is named '$name' yet.*: those that come" arm.err || fail "$source: who is waited for" arm.err
    comer stall # a program is started under it
    found "$comer"
    kill -USR1 "$comer"
    fires 2 "$comer"
    recorded x.2.db "$comer"
    kill -KILL "$comer"
    wait_end "$comer" 60
    rm -f said
    start "$programs/comer" rename "$name" >said # a process of two threads takes it
    comer=$pid
    wait_for 60 grep -qsx ready said || fail "the workload does not wait" said
    kill -USR1 "$comer"
    wait_for 60 at_least 2 '^ready$' said || fail "the workload does not take the name" said
    thread=$(ls "/proc/$comer/task" | tail -1)
    found "$comer"
    kill -USR1 "$comer"
    fires 4 "$thread"
    end_of "$arm" 300 arm
    [ "$status" = 0 ] || fail "$source: arm ends with $status" arm.out arm.err
    [ "$(sql x.4.db "SELECT count(*) > 0 FROM calls WHERE tid = $thread AND function = 'compute_here'")" = 1 ] || fail "$source: nothing of what $thread computed" arm.err
    kill -KILL "$comer"
}

# A child that is forked as soon as its parent has come is recorded too.
forked() {
    source=sample
    start_arm --source sample --cgroup "$group" --on "$trigger" -o y
    comer fork
    move_in "$comer"
    kill -USR1 "$comer"
    end_of "$arm" 300 arm
    child=$(sed -n 's/^trap 1: thread \([0-9]*\) .*/\1/p' arm.out)
    [ "$status" = 0 ] && [ -n "$child" ] && [ "$child" != "$comer" ] || fail "no trap of the child of $comer" arm.out arm.err
    recorded y.1.db "$child"
    kill -KILL "$child" "$comer"
    wait_end "$comer" 60
}

# Many at once: each has its row.
many() {
    local many=()
    start_arm --source sample --cgroup "$group" -o z
    for ((i = 0; i < 40; i++)); do
        start "$work/$name" stall >>many.said
        disown "$pid"
        many+=("$pid")
    done
    wait_for 60 at_least 40 '^ready$' many.said || fail "40 workloads" many.said
    for pid in "${many[@]}"; do move_in "$pid"; done
    source=sample
    found "${many[-1]}"
    kill -USR1 "${many[@]}"
    wait_for 120 at_least 80 '^ready$' many.said || fail "40 workloads" many.said
    kill -INT "$arm"
    end_of "$arm" 300 arm
    last=$(ls -v z.*.db | tail -1)
    known=$(sql "$last" "SELECT count(DISTINCT tid) FROM calls WHERE module GLOB '*$name' AND function = 'compute_here'")
    [ "$known" = 40 ] || fail "of 40 that came $known have calls" arm.err
    kill -KILL "${many[@]}"
}

# It ends with the cgroup.
ends() {
    for on in "--on $trigger" ""; do
        start_arm --source sample --cgroup "$group" $on -o gone
        wait_for 60 rmdir "$group" || fail "rmdir"
        end_of "$arm" 60 arm
        grep -q "the cgroup $group was removed" arm.err || fail "it does not say why it ends" arm.err
        [ "$status" = "$([ -n "$on" ] && echo 4 || echo 0)" ] || fail "'$on': arm ends with $status" arm.out arm.err
        mkdir "$group"
    done
}

# watch measures what comes, and ends with the cgroup.
watched() {
    start "$STALLTRAP" watch --cgroup "$group" --on 'syscall:clock_nanosleep>250ms' >watch.out 2>watch.err
    watch=$pid
    wait_for 120 grep -q '^watching' watch.err || fail "watch does not begin" watch.err
    comer stall
    echo "$comer" >"$group/cgroup.procs"
    kill -USR1 "$comer"
    for i in 2 3; do
        wait_for 60 at_least $i '^ready$' said || fail "the workload does not wake"
        kill -USR1 "$comer"
    done
    wait_for 60 at_least 4 '^ready$' said || fail "the workload does not wake"
    kill -KILL "$comer"
    wait "$comer" 2>/dev/null
    wait_for 60 rmdir "$group" || fail "rmdir"
    end_of "$watch" 60 watch
    [ "$status" = 0 ] || fail "watch ends with $status" watch.out watch.err
    [ "$(sed -n 's/.*: \([0-9,]*\) measured$/\1/p' watch.out)" -ge 2 ] || fail "watch has not measured what came" watch.out watch.err
}

# Without privilege they are looked for.
user() {
    [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || { echo "skipped: kernel.perf_event_paranoid forbids all of it"; exit 77; }
    chmod 755 "$work" && mkdir own && chown 65534:65534 own
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    (cd own && exec "${as[@]}" "$STALLTRAP" arm --source sample --cgroup "$group" --no-kernel -o own --ready-fd 9 9>../own.ready >../own.out 2>../own.err) &
    arm=$!
    started+=($arm)
    wait_for 120 grep -qsx armed own.ready || fail "no arm without privilege" own.out own.err
    grep -q "those that come (looked for every 100 ms: this process lacks CAP_BPF and CAP_PERFMON)" own.err || fail "it does not say that it looks" own.err
    rm -f said
    start "${as[@]}" "$work/$name" stall >said
    comer=$pid
    wait_for 60 grep -qsx ready said || fail "the workload does not wait" said
    move_in "$comer"
    own_snap() { (cd own && "${as[@]}" "$STALLTRAP" snap "$comer" >../snap.out 2>../snap.err); }
    wait_for 60 own_snap || fail "it is not found" snap.out snap.err own.err
    kill -USR1 "$comer"
    wait_for 60 eval '[ "$(awk "{ print \$14 }" /proc/$comer/stat)" -ge 10 ]' || fail "the workload does not compute"
    kill -INT "$arm"
    end_of "$arm" 300 arm
    recorded "$(ls -v own/own.*.db | tail -1)" "$comer"
    kill -KILL "$comer"
}

# Of version 1 it is refused, with the one of version 2 that is meant.
old() {
    for old in /sys/fs/cgroup/*/; do
        [ "$(stat -f -c %T "$old")" = cgroupfs ] || continue
        "$STALLTRAP" arm --source sample --cgroup "$old" >out 2>err
        [ $? = 2 ] && grep -q "is a cgroup of version 1" err || fail "one of version 1" err
        if mkdir "$old/$name" 2>/dev/null; then
            "$STALLTRAP" arm --source sample --cgroup "$old$name" >out 2>err
            [ $? = 2 ] && grep -q "the same group in version 2: --cgroup $group" err || fail "that of version 2 is not named" err
            rmdir "$old/$name"
        fi
        return
    done
    echo "skipped: no cgroups of version 1"
    exit 77
}

case $1 in
sample) cgroup_of sample && forked && comm_of sample ;;
thread) cgroup_of sample --rings thread && comm_of sample --rings thread ;;
cpu) cgroup_of sample --rings cpu --syscalls && comm_of sample --rings cpu --syscalls ;;
step) cgroup_of step && comm_of step ;;
many) many ;;
ends) ends ;;
watch) watched ;;
user) user ;;
old) old ;;
esac
