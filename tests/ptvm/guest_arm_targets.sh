# guest_arm_targets.sh SOURCE BUILD: whom `arm --source intel-pt` records: the whole machine, processes by pid, by name and by cgroup,
# threads and processes that are born while armed, and those that end. File: arm-lib.sh.
. ./arm-lib.sh "$@"

calls_of() { # NAME FUNCTION [AND...]: how many in the database NAME.1.db
    sql "$1.1.db" "SELECT count(*) FROM calls WHERE function = '$2' ${3:-}"
}

# Armed on the running targets for a moment, then Ctrl-C.
moment() { # NAME ARM-OPTION...
    local name=$1
    shift
    start_arm --source intel-pt --ring 64K -o "$name" "$@"
    sleep 0.3
    kill -INT "$arm"
    end_of "$arm" 120 "arm $*"
    [ $status -eq 0 ] || fail "arm $* ends with $status" arm.out arm.err
}

# Every thread's calls are there, from its first instruction on, in a command's rings of CPUs.
"$STALLTRAP" arm --source intel-pt --no-kernel -o threads -- "$threads" 20 64 >arm.out 2>arm.err || fail "64 threads" arm.out arm.err
same_calls threads
[ "$(calls_of threads work)" = $((64 * 20 + 1 + 5)) ] || fail "64 threads, a child and its new program make $((64 * 20 + 6)) calls of work(), not $(calls_of threads work)"
[ "$(sql threads.1.db "SELECT count(DISTINCT tid) FROM calls WHERE function = 'work'")" = 66 ] || fail "not 66 threads call work()"
no_gaps threads

# Born while armed, rings of threads: they run until each has its ring, and a moment longer.
rings_of() { find "/proc/$arm/fd" -lname '*perf_event*' 2>/dev/null | wc -l; }
have_rings() { [ "$(rings_of)" -ge $((before + 8)) ] || ! running "$arm"; }
mkfifo born.go
start bash -c "read <born.go; exec '$threads' 0 8"
target=$pid
start_arm --source intel-pt --no-kernel --rings thread --ring 16K --no-decode -o born -p "$target"
before=$(rings_of)
echo >born.go
wait_for 60 have_rings || fail "after 60 s not every thread that was born has a ring: $(rings_of) events, $before before them" arm.err
echo "events: $before before the threads were born, $(rings_of) then"
sleep 2
kill -TERM "$target"
end_of "$arm" 120 "arm whose target has 8 new threads"
outside born.1.data born 8
# Too short-lived for the recorder to come in time: calls, or a gap that says so.
"$STALLTRAP" arm --source intel-pt --no-kernel --rings thread --ring 64K -o short -- "$threads" 100 16 >arm.out 2>arm.err || fail "16 short threads, a ring each" arm.out arm.err
[ "$(sql short.1.db "SELECT count(*) FROM threads t WHERE NOT EXISTS (SELECT 1 FROM calls WHERE thread_id = t.id) AND
    NOT EXISTS (SELECT 1 FROM gaps WHERE thread_id = t.id)")" = 0 ] || fail "threads without calls and without a gap"

# A target that becomes another program while armed, and ends.
mkfifo go
start bash -c "read <go; exec '$nest' 300"
first=$pid
start_arm --source intel-pt --no-kernel --rings thread -o ends -p "$first"
echo >go
end_of "$arm" 120 "arm whose target ends"
[ $status -eq 0 ] || fail "a target that ends while armed: exit $status" arm.out arm.err
grep -q 'the target ended: snapshot' arm.err || fail "a target that ends while armed: no word of it" arm.err
same_calls ends
nest_calls ends 300

start "$nest" 2000000000
first=$pid
start "$nest" 2000000000
second=$pid
moment list --no-kernel -p "$first,$second"
[ "$(sql list.1.db "SELECT count(DISTINCT pid) FROM threads WHERE tid IN ($first, $second) AND calls > 100")" = 2 ] || fail "-p PID,PID: not both"
moment comm --no-kernel --comm nest
[ "$(sql comm.1.db "SELECT count(DISTINCT pid) FROM threads WHERE tid IN ($first, $second) AND calls > 100")" = 2 ] || fail "--comm: not both"
mkdir /sys/fs/cgroup/one
echo "$second" >/sys/fs/cgroup/one/cgroup.procs
moment cgroup --no-kernel --cgroup one
[ "$(sql cgroup.1.db "SELECT group_concat(DISTINCT tid) FROM calls WHERE function = 'leaf'")" = "$second" ] || fail "--cgroup: not just the one in it"

# A process that comes into the cgroup while arm waits, in rings of either kind.
came() { [ "$(rings_of)" -gt "$before" ] || ! running "$arm"; }
for rings in thread cpu; do
    mkdir /sys/fs/cgroup/two
    start_arm --source intel-pt --no-kernel --rings $rings --ring 64K -o "came-$rings" --cgroup two
    grep -q 'no process is in cgroup /sys/fs/cgroup/two yet' arm.err || fail "--cgroup: who is waited for" arm.err
    before=$(rings_of)
    echo "$first" >/sys/fs/cgroup/two/cgroup.procs
    wait_for 60 came || fail "--rings $rings: after 60 s there is no event for who came" arm.err
    sleep 1
    kill -INT "$arm"
    end_of "$arm" 120 "arm --cgroup, --rings $rings"
    [ $status -eq 0 ] || fail "arm --cgroup, --rings $rings ends with $status" arm.out arm.err
    [ "$(sql "came-$rings.1.db" "SELECT group_concat(DISTINCT tid) FROM calls WHERE function = 'leaf'")" = "$first" ] || fail "--rings $rings: not just the one that came"
    [ "$(sql "came-$rings.1.db" "SELECT count(*) > 0 FROM gaps g JOIN threads t ON t.id = g.thread_id WHERE t.tid = $first AND g.start_ns = 0")" = 1 ] ||
        fail "--rings $rings: no gap before it came"
    echo "$first" >/sys/fs/cgroup/cgroup.procs && rmdir /sys/fs/cgroup/two
done

# The whole machine, with kernel code.
moment all -a
[ "$(calls_of all leaf "AND tid = $second")" -gt 100 ] || fail "-a: no calls of nest"
[ "$(sql all.1.db "SELECT count(*) > 10 FROM calls WHERE kernel AND tid <> $second")" = 1 ] || fail "-a: no kernel calls of others"

echo "$second" >/sys/fs/cgroup/cgroup.procs && rmdir /sys/fs/cgroup/one
