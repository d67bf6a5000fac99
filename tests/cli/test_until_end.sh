#!/bin/bash
# --until-end: a stall that goes on when it fires is watched until it ends, and the snapshot then knows its end. The target waits for
# one byte out of a pipe that this script has: so the stall ends when it is to.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }

mkfifo pipe
exec 8<>pipe

# begin NAME OPTION...: arms at a reader that waits; its pid is $target, what is written x.*
begin() {
    name=$1
    shift
    echo "-- $name"
    rm -f x.*
    start head -c 1 pipe >read.out
    target=$pid
    wait_for 60 reads "$target" || fail "$name: the target does not read"
    start_arm -v -p "$target" --on 'offcpu>30ms' -o x "$@"
}

reads() { grep -q '^0 ' "/proc/$1/syscall" 2>/dev/null; } # system call 0 is read
awaits() { grep -q 'its end is awaited' arm.err; }
copied() { grep -q 'what they hold was copied' arm.err; }
now() { date +%s%N; }

await() { # COMMAND: until the arm says so
    wait_for 300 "$1" || fail "$name: the end is not awaited" arm.out arm.err
}

release() {
    before=$(now)
    printf x >&8
}

ended() { # DONE: arm ends well; the stall that fired has an end (1) or has not (0)
    end_of "$arm" 300 "$name"
    [ $status = 0 ] || fail "$name: arm ends with $status" arm.out arm.err
    [ "$(sql x.1.db "SELECT count(*) FROM stalls s, meta m WHERE m.key = 'trigger_stall_id' AND s.id = m.value AND s.tid = $target
        AND s.kind = 'offcpu' AND s.syscall = 'read' AND (s.end_ns IS NOT NULL) = $1")" = 1 ] ||
        fail "$name: the end of the stall is $( ((1 - $1)) && echo "" || echo "not ")known" arm.out arm.err
    [ "$(lines '^trap 1: ' arm.out)" = 1 ] || fail "$name: not one line about the trap" arm.out
}

# It ended when the byte was written, not before, and this shell wrote it.
ended_by_us() {
    local after end
    after=$(now)
    ended 1
    end=$(sql x.1.db "SELECT s.end_ns + o.value + w.value FROM stalls s, meta m, meta o, meta w WHERE m.key = 'trigger_stall_id'
        AND s.id = m.value AND o.key = 'origin_perf_ns' AND w.key = 'wall_offset_ns'")
    after=$(now)
    # The wall clock may be set by a millisecond or so between the two.
    [ "$end" -ge $((before - 5000000)) ] && [ "$end" -le "$after" ] || fail "$name: told $end, written after $before and before $after"
    [ "$(sql x.1.db "SELECT count(*) FROM stalls WHERE waker LIKE 'thread $$ %'")" = 1 ] || fail "$name: the waker is not told" arm.out
    grep -q "^trap 1: .* in read, woken by thread $$ " arm.out || fail "$name: the line does not tell the end" arm.out
    ! grep -q 'so far' arm.out || fail "$name: the line tells a part" arm.out
}

for source in sample step; do
    begin "$source: the end is awaited" --source $source --until-end 1h
    await awaits
    release
    ended_by_us
done

# The reader's own ring has room for ever: it does nothing.
start sh -c 'while :; do :; done'
busy=$pid
begin "the source's rings are full before the end" --source sample --ring 16K --until-end 1h -p "$busy"
await awaits
await copied
release
ended_by_us
kill "$busy"

begin "0: it is not awaited" --source sample --until-end 0
ended 0
grep -q '^trap 1: .* so far in read' arm.out || fail "$name: the line does not say that it goes on" arm.out
printf x >&8

begin "the bound ends the waiting" --source sample --until-end 200ms
ended 0
awaits || fail "$name: it was not awaited" arm.err
printf x >&8

# The end comes when the snapshot is written, and arm goes on: it is put into the snapshot and its database.
begin "the end comes after the bound" --source sample --until-end 200ms --snapshots 2
wait_for 300 grep -q '^wrote x.1.data, x.1.db' arm.out || fail "$name: nothing was written" arm.out arm.err
[ "$(sql x.1.db "SELECT count(*) FROM stalls WHERE tid = $target AND end_ns IS NULL")" = 1 ] || fail "$name: it does not go on" arm.out
size=$(stat -c %s x.1.data)
release
wait_for 300 grep -q '^completed x.1.data, x.1.db' arm.out || fail "$name: the database is not completed" arm.out arm.err
after=$(now)
[ "$(stat -c %s x.1.data)" = "$size" ] || fail "$name: the snapshot has another size"
grep -q "^trap 1 has ended: thread $target .* in read, woken by thread $$ " arm.out || fail "$name: the end is not told" arm.out
"$STALLTRAP" decode x.1.data -o again.db >/dev/null || fail "$name: the completed snapshot is not decoded"
for db in x.1.db again.db; do
    end=$(sql $db "SELECT s.end_ns + o.value + w.value FROM stalls s, meta m, meta o, meta w WHERE m.key = 'trigger_stall_id'
        AND s.id = m.value AND s.tid = $target AND o.key = 'origin_perf_ns' AND w.key = 'wall_offset_ns'")
    [ "$end" -ge $((before - 5000000)) ] && [ "$end" -le "$after" ] || fail "$name: told $end, written after $before and before $after"
    [ "$(sql $db "SELECT count(*) FROM stalls WHERE waker LIKE 'thread $$ %'")" = 1 ] || fail "$name: the waker is not told" arm.out
    [ "$(sql $db "SELECT count(*) FROM stall l JOIN stack k ON k.id = l.waker_stack_id JOIN symbol y ON y.id = k.symbol_id
        WHERE y.name = 'pipe_write' OR y.name LIKE '%anon_pipe_write'")" = 1 ] || fail "$name: the waker's stack has no names"
done
kill -INT "$arm"
end_of "$arm" 300 "$name"
[ $status = 0 ] || fail "$name: arm ends with $status" arm.out arm.err

# A file that is not the snapshot any more stays as it is.
begin "another file has the snapshot's name" --source sample --until-end 200ms --snapshots 2
wait_for 300 grep -q '^wrote x.1.data, x.1.db' arm.out || fail "$name: nothing was written" arm.out arm.err
cp x.1.data other.data
mv other.data x.1.data
cp x.1.data other.data
release
wait_for 300 grep -q 'is not in x.1.data: the file has gone' arm.err || fail "$name: not said" arm.out arm.err
cmp x.1.data other.data || fail "$name: it was changed"
! grep -q '^completed' arm.out || fail "$name: it was completed" arm.out
kill -INT "$arm"
end_of "$arm" 300 "$name"
rm -f other.data again.db

# The folder of the prefix is moved away, and its name leads elsewhere: the end is put into the snapshot, wherever that is now.
mkdir -p own elsewhere
begin "the snapshot's folder was moved" --source sample --until-end 200ms --snapshots 2 -o own/x
wait_for 300 grep -q '^wrote own/x.1.data, own/x.1.db' arm.out || fail "$name: nothing was written" arm.out arm.err
mv own old
ln -s elsewhere own
release
wait_for 300 grep -q '^completed own/x.1.data, own/x.1.db' arm.out || fail "$name: the database is not completed" arm.out arm.err
[ "$(sql old/x.1.db "SELECT count(*) FROM stalls WHERE tid = $target AND end_ns IS NOT NULL")" = 1 ] || fail "$name: no end" arm.out
[ -z "$(ls -A elsewhere)" ] || fail "$name: something was written elsewhere: $(ls -A elsewhere)"
kill -INT "$arm"
end_of "$arm" 300 "$name"
rm -rf old own elsewhere

# What the snapshot holds is kept while the actions before it run, whatever the triggers tell meanwhile: the arm does not wait again.
mkfifo other
exec 7<>other
start head -c 1 other >other.out
second=$pid
wait_for 60 reads "$second" || fail "the second target does not read"
begin "an action that runs when the bound is over" --source sample -p "$second" --until-end 200ms -v \
    --then 'shell:while [ ! -e go ]; do sleep 0.05; done' --then snapshot
wait_for 300 grep -q '^trap 1: ' arm.out || fail "$name: no trap" arm.out arm.err
if grep -q "^trap 1: thread $target " arm.out; then printf x >&7; else printf x >&8; fi
wait_for 60 eval '! running "$target" || ! running "$second"' || fail "$name: nobody was let go"
sleep 0.5 # its record is with the arm
touch go
end_of "$arm" 300 "$name"
[ $status = 0 ] && [ -s x.1.db ] || fail "$name: arm ends with $status" arm.out arm.err
[ "$(lines 'its end is awaited' arm.err)" = 1 ] || fail "$name: the end was awaited twice" arm.err
printf x >&7
printf x >&8
wait_for 60 eval '! running "$target" && ! running "$second"' || fail "$name: a target is left"
rm -f pipe other go
mkfifo pipe
exec 8<>pipe

begin "Ctrl-C ends the waiting" --source sample --until-end 1h
await awaits
kill -INT "$arm"
ended 0
printf x >&8

begin "the target's end is the stall's" --source sample --until-end 1h
await awaits
kill -KILL "$target"
ended 1
