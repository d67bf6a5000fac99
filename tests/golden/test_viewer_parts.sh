#!/bin/bash
# The parts of a stall on a trace in which they are known to the nanosecond (parts.sql): they add up to its duration, whatever is missing.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 TERM=dumb
unset COLUMNS
cd "$work" || exit 1
failed=0

{ echo "PRAGMA user_version = 4;"; cat "$SOURCE/tracedb/schema.sql" "$here/parts.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 p.db

expect() { # NAME COMMAND...: what it prints is standard input
    local name=$1
    shift
    "$STALLTRAP" "$@" >out 2>&1
    diff -u - out || { echo "FAILED: $name"; failed=$((failed + 1)); }
}

expect 'every part of a loop' report p.db parts --format csv <<'END'
what,state,syscall,place,who,who_ns,timer,times,total_ns,longest_ns,percent
running,,,,,,,4,32999999,18000000,42.3
waiting,sleeping,futex,store < main,"thread 101 ""hog"" in futex",,,1,32000000,32000000,41.0
ready,,,,"thread 101 ""hog""",5000001,,2,5000001,3000001,6.4
waiting,,,,,,,1,3000000,3000000,3.8
waiting,disk sleep,fsync,,softirq BLOCK,,,1,2500000,2500000,3.2
not known,,,,,,,2,2000000,1000000,2.6
ready,,,,,,,1,500000,500000,0.6
END
expect 'a part of a wait' report p.db parts --stall 5 --format csv <<'END'
what,state,syscall,place,who,who_ns,timer,times,total_ns,longest_ns,percent
waiting,sleeping,futex,store < main,"thread 101 ""hog"" in futex",,,1,22000000,22000000,73.3
running,,,,,,,1,4999999,4999999,16.7
ready,,,,"thread 101 ""hog""",3000001,,1,3000001,3000001,10.0
END
expect 'a wait of which only the record tells' report p.db parts --stall 2 --format csv <<'END'
what,state,syscall,place,who,who_ns,timer,times,total_ns,longest_ns,percent
waiting,disk sleep,fsync,,softirq BLOCK,,,1,2500000,2500000,83.3
ready,,,,,,,1,500000,500000,16.7
END
expect 'a handler' report p.db parts --stall 3 --format csv <<'END'
what,state,syscall,place,who,who_ns,timer,times,total_ns,longest_ns,percent
handler,,,,,,,1,3000000,3000000,100.0
END
expect 'a moment has none' report p.db parts --stall 4 --format csv <<'END'
what,state,syscall,place,who,who_ns,timer,times,total_ns,longest_ns,percent
END
for stall in 1 2 3 5; do
    sum=$("$STALLTRAP" report p.db parts --stall $stall --format json | python3 -c 'import json, sys; print(sum(r["total_ns"] for r in json.load(sys.stdin)))')
    [ "$sum" = "$(sqlite3 p.db "SELECT duration_ns FROM stall WHERE id = $stall")" ] || { echo "FAILED: the parts of $stall are $sum"; failed=$((failed + 1)); }
done
# The mark of a wait lies in the run before it, however long before it the machine stood still; one of the run before that is another wait's.
mark_of() { # NAME SQL EXPECTED: the first wait of which SQL changes the trace, by the one line that is expected
    cp p.db m.db
    sqlite3 m.db "$2"
    "$STALLTRAP" report m.db parts --format csv | grep '^waiting' >out
    grep -qxF "$3" out || { echo "FAILED: $1: not $3"; cat out; failed=$((failed + 1)); }
}
mark_of 'a mark of long before' "UPDATE mark SET time_ns = 2000000 WHERE time_ns = 19999000" \
    'waiting,sleeping,futex,store < main,"thread 101 ""hog"" in futex",,,1,32000000,32000000,41.0'
mark_of 'a mark of the wait before' "UPDATE offcpu SET start_ns = 55030000 WHERE start_ns = 60000000; UPDATE slice SET end_ns = 55030000 WHERE start_ns = 55000001;
    INSERT INTO mark (thread_id, cpu, time_ns, name, detail) VALUES (1, 1, 55000000, 'offcpu', 'disk sleep in fsync')" 'waiting,,,,,,,1,7970000,7970000,10.2'
mark_of 'a mark from before what was lost' "UPDATE slice SET start_ns = 59000000 WHERE start_ns = 55000001;
    INSERT INTO mark (thread_id, cpu, time_ns, name, detail) VALUES (1, 1, 56000000, 'offcpu', 'disk sleep in fsync')" 'waiting,,,,,,,1,3000000,3000000,3.8'
mark_of 'a record where no switch tells, and a mark of another wait' "INSERT INTO mark (thread_id, cpu, time_ns, name, detail) VALUES (1, 1, 75990000, 'offcpu', 'stopped')" \
    'waiting,disk sleep,fsync,,softirq BLOCK,,,1,2500000,2500000,3.2'
# Whether its CPU slept as the thread was woken (at 52 ms): asleep before it, awake after it, and nothing between.
sleeps() { # NAME EXPECTED MARKS: rows of mark
    cp p.db s.db
    sqlite3 s.db "INSERT INTO mark (cpu, time_ns, name, detail) VALUES $3"
    got=$("$STALLTRAP" report s.db | sed -n 's/^  its CPU   //p')
    [ "$got" = "$2" ] || { echo "FAILED: $1: '$got'"; failed=$((failed + 1)); }
}
sleeps 'a CPU that slept' 'CPU 1 slept as the thread was woken, and was awake 80.0 us later, of 3.00 ms that it was ready (deepest MWAIT 0x60, last 0x20, by an interrupt)' \
    "(1, 51000000, 'asleep', 'MWAIT 0x60'), (1, 52080000, 'awake', 'deepest MWAIT 0x60, last 0x20, by an interrupt'), (1, 53000000, 'asleep', 'MWAIT 0x00'), (1, 54000000, 'awake', 'x')"
sleeps 'another CPU slept' '' "(0, 51000000, 'asleep', 'MWAIT 0x60'), (0, 52080000, 'awake', 'x')"
sleeps 'it went to sleep later' '' "(1, 52000000, 'asleep', 'MWAIT 0x60'), (1, 52080000, 'awake', 'x')"
sleeps 'it was awake before' '' "(1, 51000000, 'asleep', 'MWAIT 0x60'), (1, 51999000, 'awake', 'x')"
"$STALLTRAP" report p.db | sed -n '/where the time went/,/ 0\.6 %/p' >text
diff -u - text <<'END' || { echo "FAILED: the lines of the report"; failed=$((failed + 1)); }
  where the time went:
    33.0 ms  42.3 %  running; by samples in compute() ≈ 18.0 ms (18 samples in all), store() ≈ 15.0 ms (4 times, longest 18.0 ms)
    32.0 ms  41.0 %  waiting (sleeping) in futex, at store < main; woken by thread 101 "hog" in futex
    5.00 ms   6.4 %  ready to run; thread 101 "hog" had the CPU for 5.00 ms (2 times, longest 3.00 ms)
    3.00 ms   3.8 %  waiting; who ended it, and when, is not known
    2.50 ms   3.2 %  waiting (disk sleep) in fsync; woken by softirq BLOCK
    2.00 ms   2.6 %  not known: no context switch tells of this time (2 times, longest 1.00 ms)
     500 us   0.6 %  ready to run; who had the CPU is not known
END
"$STALLTRAP" report p.db why --stall 5 | grep -q 'running; in what is not known: no sample fell into it$' || { echo "FAILED: a function without a sample"; failed=$((failed + 1)); }

# The cause of a busy loop from FROM to TO, after SQL that changes the trace.
cause() { # NAME FROM TO SQL EXPECTED
    cp p.db c.db
    sqlite3 c.db "UPDATE stall SET start_ns = $2, end_ns = $3, duration_ns = $3 - $2 WHERE id = 1; $4"
    "$STALLTRAP" report c.db >whole
    grep '^  cause' whole >out
    grep -Eq "^  cause     $5" out || { echo "FAILED: $1: $(cat out), not $5"; failed=$((failed + 1)); }
}
cause 'computing' 2000000 20000000 '' 'computing in compute\(\): the thread ran for 18\.0 ms of the 18\.0 ms, ≈ 18\.0 ms of that in compute\(\) itself \(by 18 samples\)$'
cause 'computing, in two of which neither is most' 2000000 38000000 "DELETE FROM offcpu WHERE start_ns = 20000000; UPDATE slice SET end_ns = 38000000 WHERE start_ns = 0; UPDATE call SET depth = 9 WHERE id = 4" \
    'computing.*: the thread ran for 36\.0 ms of the 36\.0 ms, ≈ 18\.0 ms of that in '
cause 'computing, by every branch' 2000000 20000000 "DELETE FROM meta WHERE key = 'samples'" 'computing in compute\(\): .* in compute\(\) itself$'
cause 'computing, no sample' 2000000 20000000 'UPDATE stall_attr SET value = 0' 'computing: the thread ran for 18\.0 ms .*; in what, no sample tells'
cause 'woken, and no CPU' 51000000 56000000 '' 'CPU taken by other work: the thread was ready to run for 3\.00 ms of the 5\.00 ms: thread 101 "hog" had its CPU for 3\.00 ms$'
cause 'woken, and who had the CPU is known of a moment of it' 51000000 56000000 'UPDATE slice SET end_ns = start_ns + 40000 WHERE thread_id = 2' \
    'ready without a CPU: .* thread 101 "hog" had its CPU for [0-9.]+ us, who had it otherwise is not recorded \(arm -a tells\)$'
grep -q 'ready to run; thread 101 "hog" had the CPU for [0-9.]* us, who had it otherwise is not known$' whole || { echo "FAILED: a part that is hardly known"; failed=$((failed + 1)); }
cause 'woken, and who had the CPU is not known' 51000000 56000000 'DELETE FROM slice WHERE thread_id = 2' 'ready without a CPU: .* not recorded'
cause 'a wait that is no lock' 21000000 60000000 '' 'not known \(what its waker did'
cause 'lock' 21000000 60000000 "UPDATE symbol SET name = 'pthread_mutex_lock' WHERE name = 'store'" \
    'lock contention: the thread waited for 31\.0 ms of the 39\.0 ms for locks; they were let go by thread 101 "hog" in futex'
cause 'a lock that nobody let go' 21000000 60000000 "UPDATE symbol SET name = 'pthread_mutex_lock' WHERE name = 'store'; DELETE FROM mark WHERE name = 'woken'" 'not known'
cause 'sleep' 21000000 60000000 "UPDATE mark SET detail = 'sleeping in clock_nanosleep' WHERE name = 'offcpu'" \
    'own time-out: the program asked to sleep: 31\.0 ms of the 39\.0 ms in clock_nanosleep'
cause 'of two that fit the first' 21000000 60000000 "UPDATE mark SET detail = 'sleeping in clock_nanosleep' WHERE name = 'offcpu'; INSERT INTO stall_attr VALUES (1, 'idle', 1)" \
    'own time-out: the program asked to sleep'
cause 'the second alone' 21000000 60000000 "INSERT INTO stall_attr VALUES (1, 'idle', 1)" 'usually idle'
many="DELETE FROM mark; DELETE FROM slice; DELETE FROM offcpu; WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 19)
    INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted) SELECT 1, 2000000 + x * 1000000, 2900000 + x * 1000000, 0 FROM n;
    INSERT INTO slice (thread_id, cpu, start_ns, end_ns) SELECT 1, 0, end_ns, end_ns + 100000 FROM offcpu;
    INSERT INTO mark (thread_id, time_ns, name, detail) SELECT 1, start_ns, 'offcpu', 'disk sleep in CALL' FROM offcpu"
cause 'many short waits for the disk' 2000000 22000000 "${many/CALL/pwrite64}" 'disk write \(pwrite64\): the thread waited for 18\.0 ms of the 20\.0 ms in pwrite64, in 20 waits of at most 900 us$'
cause 'many short reads' 2000000 22000000 "${many/CALL/pread64}" 'disk read: .* in 20 waits'
cause 'many short waits for a pipe' 2000000 22000000 "${many/disk sleep in CALL/sleeping in read}" 'not known \(who woke it'
cause 'page faults' 2000000 22000000 "${many/ in CALL/}; UPDATE offcpu SET call_id = 4; UPDATE symbol SET name = 'filemap_fault' WHERE id = 4" \
    'page fault from disk: the thread waited for 18\.0 ms of the 20\.0 ms in 20 faults'

# The record of a stall that is no single wait has the state, the stacks and the waker of one of its waits: told where that wait is it.
at() { # FUNCTION...: SQL of a kernel stack 9 and of the waker's stack 10
    local depth=0 name sql="INSERT INTO symbol (id, module_id, name, address, size) VALUES (20, 2, 'try_to_wake_up', 20, 1), (21, 2, '__locks_wake_up_blocks', 21, 1)"
    for name in "$@"; do
        sql+=", ($((30 + depth)), 2, '$name', $((30 + depth)), 1)"
        depth=$((depth + 1))
    done
    sql+="; INSERT INTO stack (id, depth, address, symbol_id) VALUES (10, 0, 20, 20), (10, 1, 21, 21)"
    for ((depth--; depth >= 0; depth--)); do
        sql+=", (9, $depth, $((30 + depth)), $((30 + depth)))"
    done
    echo "$sql"
}
read_of_1ms="UPDATE stall SET kind = 'syscall', syscall = 'read', state = 'disk sleep', waker = 'softirq BLOCK', wake_ns = 63000000, kernel_stack_id = 9 WHERE id = 1;
    UPDATE offcpu SET start_ns = 62000000 WHERE start_ns = 60000000; UPDATE slice SET end_ns = 62000000 WHERE start_ns = 55000001; DELETE FROM slice WHERE thread_id = 3;
    UPDATE offcpu SET end_ns = 20000002 WHERE start_ns = 20000000; UPDATE slice SET start_ns = 20000002 WHERE start_ns = 55000001; $(at folio_wait_bit_common filemap_read)"
cause 'a short read in much computing' 2000000 72000000 "$read_of_1ms" 'computing in store\(\): the thread ran for '
"$STALLTRAP" report c.db >out
grep -E '^  (woken by|kernel|by kernel)|, disk sleep' out && { echo 'FAILED: a read of 1 ms is told as the stall'; failed=$((failed + 1)); }
file_lock="UPDATE mark SET detail = 'sleeping in fcntl' WHERE time_ns = 19999000; UPDATE stall SET kind = 'func', state = 'sleeping', waker = 'thread 101 \"hog\"',
    waker_thread_id = 2, wake_ns = 52000100, kernel_stack_id = 9, waker_stack_id = 10 WHERE id = 1; INSERT INTO stall_attr VALUES (1, 'arg1', 0), (1, 'arg2', 2); $(at fcntl_setlk)"
cause 'the lock of a file, in a function' 2000000 60000000 "$file_lock" 'lock contention: a lock of the file, asked for by fcntl; thread 101 "hog" let go of it$'
"$STALLTRAP" report c.db >out
grep -qx '  where     system call fcntl, sleeping' out && grep -qx '  woken by  thread 101 "hog"' out || { echo 'FAILED: most of the stall is not told'; failed=$((failed + 1)); }
cause 'a lock that the arguments of a function look like' 2000000 60000000 "${file_lock//fcntl/futex}" 'waited for another thread'
still="UPDATE stall SET end_ns = NULL, waker = NULL, waker_thread_id = NULL, wake_ns = NULL, waker_stack_id = NULL WHERE id = 1; DELETE FROM mark WHERE name = 'woken'"
cause 'noticed in the lock' 2000000 50000000 "$file_lock; $still; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 30000000)" \
    'lock contention: a lock of the file, asked for by fcntl; it is still held: nobody has let go of it$'
cause 'noticed before it' 2000000 50000000 "$file_lock; $still; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 10000000)" 'not known'
own="${file_lock//fcntl/read}; UPDATE stall SET waker = 'its own time-out', waker_thread_id = NULL, wake_ns = 52000100 WHERE id = 1"
cause 'its own time-out' 2000000 60000000 "$own; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 30000000), (1, 'timeout_ns', 31990000)" \
    'own time-out: the thread waited 32\.0 ms of the 58\.0 ms in read until a time-out of 32\.0 ms that it had set itself ran out, and nothing came before, at store < main$'
"$STALLTRAP" report c.db | grep -qx '  woken by  its own time-out of 32.0 ms' || { echo 'FAILED: the length of the time-out'; failed=$((failed + 1)); }
cause 'a time-out of another wait' 2000000 60000000 "$own; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 30000000), (1, 'timeout_ns', 40000000)" \
    'own time-out: the thread waited 32\.0 ms of the 58\.0 ms in read until a time-out that it had set itself'
cause 'a sleep that goes on' 2000000 50000000 "${file_lock//fcntl/clock_nanosleep}; $still; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 30000000), (1, 'timeout_ns', 300000000)" \
    'own time-out: the program asked to sleep for 300 ms, of which 30\.0 ms are over, in clock_nanosleep, at store < main$'
# A wait that goes on, of which the last switch tells until the recording stopped (50 ms), and the record until the snapshot (90 ms).
open_wait="UPDATE stall SET kind = 'offcpu', state = 'sleeping', syscall = 'futex', user_stack_id = NULL WHERE id = 1; DELETE FROM mark WHERE name = 'woken'; DELETE FROM slice;
    DELETE FROM offcpu WHERE start_ns > 20000000; UPDATE offcpu SET end_ns = 50000000; UPDATE stall SET end_ns = NULL WHERE id = 1; INSERT INTO stack (id, depth, address, symbol_id)
    VALUES (12, 0, 3, 3), (12, 1, 1, 1); UPDATE stall SET user_stack_id = 12 WHERE id = 1"
cause 'a wait that nobody has ended' 20000000 90000000 "$open_wait" 'not known \(nobody has woken it yet: where it waits tells for what\)$'
grep -qx '    70\.0 ms 100\.0 %  waiting (sleeping) in futex, at store < main; nobody has ended it yet' whole || { echo 'FAILED: it is not one part'; cat whole; failed=$((failed + 1)); }
# Who let go of a lock held it in the call that was open as it did; a sampled call may have begun behind that, and then its own stack tells.
lock="UPDATE stall SET kind = 'offcpu', state = 'sleeping', syscall = 'futex', waker = 'thread 101 \"hog\"', waker_thread_id = 2, wake_ns = 52000100 WHERE id = 1;
    INSERT INTO stall_attr VALUES (1, 'arg1', 0), (1, 'arg2', 2), (1, 'waker_user_stack_id', 11); INSERT INTO module (id, name, path, kernel) VALUES (9, 'libc.so.6', '/libc.so.6', 0);
    INSERT INTO symbol (id, module_id, name, address, size) VALUES (40, 9, '__lll_lock_wake', 40, 1), (41, 1, 'unlocks', 41, 1); INSERT INTO stack (id, depth, address, symbol_id) VALUES (11, 0, 40, 40);
    INSERT INTO call (id, thread_id, symbol_id, depth, start_ns, duration_ns, self_ns, flags) VALUES (1 << 40, 2, 3, 0, 52000000, 9000000, 9000000, 32);
    INSERT INTO call_time (thread_id, start_ns, id) SELECT thread_id, start_ns, id FROM call WHERE thread_id = 2"
beside="INSERT INTO call (id, thread_id, symbol_id, depth, start_ns, duration_ns, self_ns, flags) VALUES ((1 << 40) - 1, 2, 2, 0, 1000000, 1000, 0, 32),
    ((1 << 40) + 1, 2, 2, 0, 70000000, 1000, 0, 32); INSERT INTO call_time (thread_id, start_ns, id) SELECT thread_id, start_ns, id FROM call WHERE thread_id = 2 AND id <> 1 << 40"
cause 'a sampled call of another moment' 20000000 55000000 "$lock; $beside" 'lock contention: held by thread 101 "hog", until it let go of the lock$'
cause 'and its own stack' 20000000 55000000 "$lock; INSERT INTO stack (id, depth, address, symbol_id) VALUES (11, 1, 41, 41)" 'lock contention: held by thread 101 "hog" in unlocks\(\), until'
cause 'a sampled call of the moment' 20000000 55000000 "$lock; UPDATE stack SET symbol_id = 3 WHERE id = 11" 'lock contention: held by thread 101 "hog" in store\(\), until'
cause 'a call that is known' 20000000 55000000 "$lock; UPDATE call SET flags = 0 WHERE thread_id = 2" 'lock contention: held by thread 101 "hog" in store\(\), until'
ready="UPDATE stall SET kind = 'runq', state = 'runnable', waker = NULL WHERE id = 1; INSERT INTO stall_attr VALUES (1, 'next', 'thread 101 \"hog\"')"
quota="$ready, (1, 'cpu_quota_us', 5000), (1, 'cpu_period_us', 100000), (1, 'throttled', 7)"
throttled='cgroup CPU throttling: the thread was ready to run for 40\.0 ms, but its control group may use 5\.00 ms of CPU time every 100 ms and was throttled 7 times so far$'
cause 'another had the CPU' 2000000 42000000 "$ready" 'CPU taken by other work: the thread was ready to run for 40\.0 ms: thread 101 "hog" got its CPU'
ksoftirqd="${ready/101 \"hog\"/15 \"ksoftirqd/0\"}, (1, 'next_kernel', 1)"
cause 'another had it most of the time' 2000000 42000000 "$ready, (1, 'held_ns', 39000000), (1, 'turns', 3)" \
    'CPU taken by other work: the thread was ready to run for 40\.0 ms: thread 101 "hog" had its CPU for 39\.0 ms$'
cause 'and of the target another one, for a moment' 2000000 42000000 "DELETE FROM offcpu; DELETE FROM slice; INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted) VALUES
    (1, 2000000, 42000000, 1); INSERT INTO slice (thread_id, cpu, start_ns, end_ns) VALUES (1, 0, 0, 2000000), (2, 0, 10000000, 13000000), (1, 0, 42000000, 50000000);
    ${ready//101 \"hog\"/9 \"cpu-hog\"}, (1, 'held_ns', 35000000), (1, 'turns', 3)" '.*: thread 9 "cpu-hog" had its CPU for 35\.0 ms$'
grep -qx '    40\.0 ms 100\.0 %  ready to run; thread 9 "cpu-hog" had the CPU for 35\.0 ms' whole || { echo 'FAILED: who had it longest is not told'; cat whole; failed=$((failed + 1)); }
cause 'many had it in turn' 2000000 42000000 "$ready, (1, 'held_ns', 400000), (1, 'turns', 93)" '.*: thread 101 "hog" had its CPU for 400 us, the longest of 93 turns of others$'
cause 'more than are remembered' 2000000 42000000 "$ready, (1, 'held_ns', 400000), (1, 'turns', 512)" '.* had its CPU for 400 us, the longest of the last 512 turns of others$'
cause 'softirqs had it' 2000000 42000000 "$ksoftirqd, (1, 'held_ns', 30000000), (1, 'turns', 3)" 'softirq load: .*: thread 15 "ksoftirqd/0" had its CPU for 30\.0 ms, which runs softirqs$'
cause 'softirqs had it for a moment' 2000000 42000000 "$ksoftirqd, (1, 'held_ns', 90000), (1, 'turns', 93)" \
    "CPU taken by other work: .*: the kernel's thread 15 \"ksoftirqd/0\" had its CPU for 90\.0 us, the longest of 93 turns"
cause 'softirqs had it first' 2000000 42000000 "$ksoftirqd; UPDATE stall SET kind = 'offcpu' WHERE id = 1; DELETE FROM slice" \
    "CPU taken by other work: .*: the kernel's thread 15 \"ksoftirqd/0\" got its CPU first, who had it then is not recorded \(runq tells, or arm -a\)$"
cause 'throttled, and the CPU was used by another' 2000000 42000000 "$quota, (1, 'throttled_now', 1)" "$throttled"
cause 'a quota that was not used up' 2000000 42000000 "$quota, (1, 'throttled_now', 0)" 'CPU taken by other work: '
cause 'a quota, and nobody looked' 2000000 42000000 "$quota" 'not known'
cause 'it took itself off' 2000000 42000000 "$quota; $(at task_work_run); UPDATE stall SET kernel_stack_id = 9" "$throttled"
cause 'nobody had the CPU' 2000000 42000000 "$quota; DELETE FROM stall_attr WHERE key = 'next'" "$throttled"
stopped="UPDATE mark SET detail = 'stopped' WHERE time_ns = 19999000"
cause 'stopped' 2000000 60000000 "$stopped" 'stopped: a signal stopped the thread for 32\.0 ms of the 58\.0 ms; thread 101 "hog" in futex let it go on$'
cause 'stopped, of which only the snapshot tells' 2000000 50000000 "DELETE FROM mark; INSERT INTO mark (thread_id, time_ns, name, detail) VALUES (1, 49000000, 'waiting', 'stopped');
    $still" 'stopped: a signal stopped the thread for 30\.0 ms of the 48\.0 ms$'
cause 'stopped, by whom' 2000000 60000000 "$stopped; INSERT INTO stall_attr VALUES (1, 'stopped_by', 'thread 7 \"shell\"'), (1, 'stop_signal', 20)" \
    'stopped: SIGTSTP from thread 7 "shell" stopped the thread for 32\.0 ms of the 58\.0 ms; thread 101 "hog" in futex let it go on$'
cause 'stopped by itself' 2000000 60000000 "$stopped; INSERT INTO stall_attr VALUES (1, 'stopped_by', 'thread 100 \"loop\"'), (1, 'stop_signal', 19)" \
    'stopped: SIGSTOP, which it sent itself, stopped the thread for '
cause 'stopped by who has ended since' 2000000 60000000 "$stopped; UPDATE mark SET detail = replace(detail, '\"hog\" ', '') WHERE name = 'woken';
    INSERT INTO stall_attr VALUES (1, 'stopped_by', 'thread 101 \"kill\"'), (1, 'stop_signal', 19)" \
    'stopped: SIGSTOP from thread 101 "kill" stopped the thread for 32\.0 ms of the 58\.0 ms; thread 101 "kill" let it go on$'
cause 'traced, by whom' 2000000 60000000 "UPDATE mark SET detail = 'tracing stop' WHERE time_ns = 19999000; INSERT INTO stall_attr VALUES (1, 'tracer', 'process 7 \"gdb\"')" \
    'stopped: process 7 "gdb", which traces it, held the thread for 32\.0 ms of the 58\.0 ms'
cause 'frozen' 2000000 60000000 "${file_lock//fcntl_setlk/__refrigerator}; UPDATE mark SET detail = 'disk sleep' WHERE time_ns = 19999000; UPDATE symbol SET name = 'unfreeze_cgroup' WHERE id = 21" \
    'frozen: the freezer held the thread for 32\.0 ms of the 58\.0 ms \(__refrigerator\); thread 101 "hog" thawed it$'
child="${file_lock//fcntl/wait4}; UPDATE symbol SET name = 'do_notify_parent' WHERE id = 21; INSERT INTO symbol (id, module_id, name, address, size) VALUES (22, 2, 'do_exit', 22, 1)"
cause 'a child' 2000000 60000000 "$child; INSERT INTO stack (id, depth, address, symbol_id) VALUES (10, 2, 22, 22)" \
    'waited for a child: the thread waited 32\.0 ms of the 58\.0 ms in wait4 until process 101 "hog" ended, at store < main$'
cause 'a child that was stopped' 2000000 60000000 "$child" 'not known'
cause 'what was looked up in another wait' 2000000 60000000 "$file_lock; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 10000000), (1, 'file', '/x'), (1, 'lock_holder', 'process 7')" \
    'lock contention: a lock of the file, asked for by fcntl; thread 101 "hog" let go of it$'
# Where no switch was sampled: the stack of the record is that of the loop's end, and the system call that took most is known.
nap="DELETE FROM mark; UPDATE offcpu SET call_id = NULL; UPDATE stall SET kind = 'busy', state = 'sleeping', waker = 'its own time-out', wake_ns = 52000100, user_stack_id = 9
    WHERE id = 1; INSERT INTO stall_attr VALUES (1, 'longest_syscall', 'clock_nanosleep'), (1, 'syscall_ns', 32000000); $(at epoll_wait)"
cause 'a nap that no switch tells of' 10000000 60000000 "$nap" 'own time-out: the program asked to sleep: 32\.0 ms of the 50\.0 ms in clock_nanosleep$'
cause 'a nap beside a longer call' 2000000 78000000 "$nap" 'own time-out: the thread waited 32\.0 ms of the 76\.0 ms until a time-out that it had set itself ran out, and nothing came before$'
peer="${file_lock//fcntl/recvfrom}; UPDATE stall SET waker = 'softirq NET_RX', waker_thread_id = NULL WHERE id = 1; UPDATE symbol SET name = 'sock_def_readable' WHERE id = 21;
    UPDATE symbol SET name = 'sk_wait_data' WHERE id = 30; INSERT INTO stall_attr VALUES (1, 'peer', '10.0.0.1:80'), (1, 'peer_process', 'process 7 \"db\"')"
cause 'slow peer, in a function' 2000000 60000000 "$peer, (1, 'noticed_after_ns', 30000000)" 'slow peer: 10\.0\.0\.1:80, process 7 "db", answered after 32\.0 ms$'
cause 'a peer of another wait' 2000000 60000000 "$peer, (1, 'noticed_after_ns', 10000000)" 'not known'
cause 'slow peer, still' 2000000 50000000 "$peer, (1, 'noticed_after_ns', 30000000); UPDATE stall SET kind = 'syscall', syscall = 'recvfrom'; $still" \
    'slow peer: 10\.0\.0\.1:80, process 7 "db", has sent nothing for 30\.0 ms of the 48\.0 ms, and the thread still waits for it in recvfrom$'
cause 'a client that asks nothing' 2000000 50000000 "$peer, (1, 'noticed_after_ns', 30000000), (1, 'accepted', 1); UPDATE stall SET kind = 'syscall', syscall = 'recvfrom'; $still" 'not known'
cause 'the lock of a file, and who took it' 2000000 60000000 "$file_lock; INSERT INTO stall_attr VALUES (1, 'noticed_after_ns', 30000000), (1, 'lock_holder', 'process 7 \"holder\"')" \
    'lock contention: a lock of the file, asked for by fcntl; process 7 "holder" had taken it; thread 101 "hog" let go of it$'
for_another="${file_lock//fcntl/futex}; DELETE FROM stall_attr WHERE key LIKE 'arg%'; UPDATE symbol SET name = 'futex_wake' WHERE id = 21"
cause 'waited for another thread' 2000000 60000000 "$for_another" \
    'waited for another thread: the thread waited 32\.0 ms of the 58\.0 ms in futex until thread 101 "hog" woke it$'
cause 'and that one waited' 2000000 60000000 "$for_another; INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted) VALUES (2, 19000000, 50000000, 0);
    INSERT INTO mark (thread_id, time_ns, name, detail) VALUES (2, 18990000, 'offcpu', 'sleeping in clock_nanosleep')" \
    'waited for another thread: .* "hog" woke it; that one was itself off its CPU for 30\.0 ms of it \(sleeping in clock_nanosleep\)$'
cause 'and that one waited, marked long before' 2000000 60000000 "$for_another; INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted) VALUES (2, 19000000, 50000000, 0);
    INSERT INTO mark (thread_id, time_ns, name, detail) VALUES (2, 12000000, 'offcpu', 'sleeping in clock_nanosleep')" \
    'waited for another thread: .* off its CPU for 30\.0 ms of it \(sleeping in clock_nanosleep\)$'
cause 'and that one waited twice, marked the first time' 2000000 60000000 "$for_another; INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted) VALUES
    (2, 18000000, 18980000, 0), (2, 19000000, 50000000, 0); INSERT INTO mark (thread_id, time_ns, name, detail) VALUES (2, 18970000, 'offcpu', 'sleeping in clock_nanosleep')" \
    'waited for another thread: .* off its CPU for 30\.0 ms of it$'
cause 'and that one waits' 2000000 60000000 "$for_another; INSERT INTO offcpu (thread_id, start_ns, end_ns, preempted) VALUES (2, 19000000, 50000000, 0);
    INSERT INTO mark (thread_id, time_ns, name, detail) VALUES (2, 49000000, 'waiting', 'sleeping in clock_nanosleep')" \
    'waited for another thread: .* "hog" woke it; that one was itself off its CPU for 30\.0 ms of it \(sleeping in clock_nanosleep\)$'
cause 'a thread of another process' 2000000 60000000 "$for_another; INSERT INTO process (id, pid, name) VALUES (2, 200, 'x'); UPDATE thread SET process_id = 2 WHERE id = 2" 'not known'
cp p.db c.db && sqlite3 c.db "$file_lock; UPDATE symbol SET name = 'asm_sysvec_apic_timer_interrupt' WHERE id = 21; INSERT INTO symbol (id, module_id, name, address, size) VALUES (22, 2, 'cpu_startup_entry', 22, 1);
    INSERT INTO stack (id, depth, address, symbol_id) VALUES (10, 2, 22, 22); UPDATE stall SET end_ns = 60000000, duration_ns = 58000000 WHERE id = 1"
"$STALLTRAP" report c.db | grep -qx '  by kernel try_to_wake_up < asm_sysvec_apic_timer_interrupt' || { echo 'FAILED: the frames that an interrupt came upon'; failed=$((failed + 1)); }
cp p.db c.db && sqlite3 c.db "UPDATE mark SET detail = 'by an interrupt in hrtimer_wakeup' WHERE name = 'woken'"
"$STALLTRAP" report c.db | grep -q 'in futex, at store < main; woken by its own time-out$' || { echo 'FAILED: the time-out of a mark'; failed=$((failed + 1)); }
cp p.db c.db && sqlite3 c.db "INSERT INTO stall_attr VALUES (1, 'began_before', 1)"
"$STALLTRAP" report c.db | grep -qx '  how long  at least 78.0 ms: it had begun before it was watched' || { echo 'FAILED: a stall from before'; failed=$((failed + 1)); }
sqlite3 c.db "UPDATE stall SET end_ns = NULL WHERE id = 1"
"$STALLTRAP" report c.db | grep -qx '  how long  at least 78.0 ms: it had begun before it was watched, and still going on when the snapshot was taken' ||
    { echo 'FAILED: a stall from before that goes on'; failed=$((failed + 1)); }
cause 'many waits of which the record has the last' 2000000 64000000 "UPDATE mark SET detail = 'disk sleep in fsync' WHERE name = 'offcpu'; INSERT INTO mark (thread_id, cpu, time_ns, name, detail) VALUES
    (1, 1, 59999000, 'offcpu', 'disk sleep in fsync'); UPDATE stall SET kind = 'syscall', syscall = 'fsync', state = 'disk sleep', wake_ns = 62900000, kernel_stack_id = 9 WHERE id = 1;
    $(at submit_bio_wait)" 'disk write \(fsync\): the thread slept 34\.9 ms of the 62\.0 ms \(2 times\) in fsync: kernel function submit_bio_wait$'

# Where it waited, by the stack of the wait: with what the open calls have further out, if they are of the same path.
stood() { # NAME EXPECTED FRAME...: ids of the symbols of the stack, the innermost first
    local name=$1 expected=$2 depth=0 frame
    shift 2
    cp p.db c.db
    sqlite3 c.db "INSERT INTO symbol (id, module_id, name, address, size) VALUES (40, 1, 'start', 40, 1), (41, 1, 'other', 41, 1); UPDATE call SET parent_id = 90 WHERE id = 1;
        INSERT INTO call (id, thread_id, symbol_id, depth, start_ns, duration_ns, self_ns, flags) VALUES (90, 1, 40, -1, 0, 100000000, 0, 32); UPDATE stall SET user_stack_id = 50 WHERE id = 2"
    for frame; do
        sqlite3 c.db "INSERT INTO stack (id, depth, address, symbol_id) VALUES (50, $depth, $frame, $frame)"
        depth=$((depth + 1))
    done
    "$STALLTRAP" report c.db why --stall 2 >out
    grep -qxF "  in        $expected" out || { echo "FAILED: $name: not $expected"; cat out; failed=$((failed + 1)); }
}
stood 'the calls have an outer frame' 'store < main < start' 3 1
stood 'a caller that frame pointers skip' 'store < main < start' 3 40
stood 'another path from the third frame on' 'store < main < other' 3 1 41
stood 'another path from the second frame on' 'store < other' 3 41
stood 'the stack has an outer frame' 'store < main < start' 3 1 40 41
stood 'another function' 'other < main' 41 1

# Durations that samples tell are never given as exact.
cp p.db q.db && sqlite3 q.db 'UPDATE call SET duration_ns = duration_ns / 2 WHERE id = 2; DELETE FROM function_summary'
for report in top tree 'callers compute' 'latency compute' 'worst compute' 'compare q.db'; do
    # shellcheck disable=SC2086
    "$STALLTRAP" report p.db $report | grep -q '≈ ' || { echo "FAILED: $report: an estimate looks exact"; failed=$((failed + 1)); }
    # shellcheck disable=SC2086
    "$STALLTRAP" report p.db $report --format csv | sed -n '1s/.*,//p;2s/.*,//p' | paste -sd' ' | grep -qx 'sampled 1' ||
        { echo "FAILED: $report: the column sampled"; failed=$((failed + 1)); }
done
# What may be several calls or a part of one has its bound instead.
for bound in '64 ≤ 3 most' '128 ≥ 2 least'; do
    read -r bit sign number word <<<"$bound"
    cp p.db b.db && sqlite3 b.db "UPDATE call SET flags = 32 | $bit"
    for report in top 'worst compute'; do
        # shellcheck disable=SC2086
        "$STALLTRAP" report b.db $report | grep -q "$sign [0-9]" && "$STALLTRAP" report b.db $report --format csv | sed -n 2p | grep -q ",$number\$" ||
            { echo "FAILED: $report: no $sign for flag $bit"; failed=$((failed + 1)); }
    done
    "$STALLTRAP" view b.db --keys l --size 160x24 --screen - | grep -q "at $word .* self about .* may be " || { echo "FAILED: view: not at $word"; failed=$((failed + 1)); }
done
for format in speedscope html svg chrome; do
    "$STALLTRAP" export b.db --to $format -o - | grep -q 'SAMPLED: times are estimates' || { echo "FAILED: $format does not say that it is sampled"; failed=$((failed + 1)); }
done
sqlite3 c.db "DELETE FROM meta; UPDATE call SET flags = 0"
"$STALLTRAP" report c.db top | grep -q '≈' && { echo 'FAILED: what is exact looks like an estimate'; failed=$((failed + 1)); }
"$STALLTRAP" view p.db --keys l --size 160x24 --screen - >screen 2>&1
grep -q 'times are estimates' screen && grep -q 'about .* self about .*sampled' screen || { echo 'FAILED: view'; cat screen; failed=$((failed + 1)); }

# Fingerprints: the same of two builds of a program on two hosts, of ten stalls that differ ten.
mkdir folder odd
alike() { "$STALLTRAP" report "$1" | sed -n 's/^  alike  *//p'; }
make() { # FILE SQL
    { echo "PRAGMA user_version = 4;"; cat "$SOURCE/tracedb/schema.sql" "$here/trace.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 "folder/$1"
    sqlite3 "folder/$1" "$2"
}
make a1.db "INSERT INTO meta VALUES ('wall_offset_ns', 1700000000000000000)"
make a2.db "UPDATE symbol SET address = address + 7777777, name = CASE name WHEN 'relay' THEN 'relay.constprop.0.isra.0' ELSE name END;
    UPDATE thread SET tid = tid + 50000, name = name || 'x'; UPDATE process SET pid = 7; INSERT INTO meta VALUES ('wall_offset_ns', 1700000100000000000), ('hostname', 'other');
    UPDATE stall SET waker = 'thread 54313 \"writerx\"', duration_ns = duration_ns - 1000000, end_ns = end_ns - 1000000; UPDATE module SET path = '/opt/' || path, build_id = '77'"
[ "$(alike folder/a1.db)" = 'offcpu|lock contention|thread|relay<main' ] || { echo "FAILED: the fingerprint $(alike folder/a1.db)"; failed=$((failed + 1)); }
[ "$(alike folder/a1.db)" = "$(alike folder/a2.db)" ] || { echo "FAILED: another build: $(alike folder/a2.db)"; failed=$((failed + 1)); }
make b.db "UPDATE symbol SET name = 'pump2' WHERE name = 'relay'"
make c.db "UPDATE stall SET waker = 'softirq NET_RX', waker_thread_id = NULL"
make d.db "UPDATE stall SET syscall = 'read'"
make e.db "UPDATE stall SET syscall = 'fsync', waker = 'softirq BLOCK', waker_thread_id = NULL"
make f.db "UPDATE stall SET kind = 'syscall'"
make g.db "UPDATE stall SET kind = 'busy', start_ns = 100000, end_ns = 4900000, duration_ns = 4800000, state = NULL, wake_ns = NULL"
make h.db "UPDATE stall SET state = 'runnable', waker = NULL, wake_ns = NULL; UPDATE offcpu SET preempted = 1; INSERT INTO stall_attr VALUES (1, 'next', 'thread 9 \"x\"')"
make i.db "UPDATE stall SET kind = 'irq'"
make j.db "UPDATE stall SET syscall = 'clock_nanosleep', waker = 'irq 236 timer', waker_thread_id = NULL"
kinds=$(for db in folder/*.db; do alike "$db"; done | sort | uniq | wc -l)
[ "$kinds" = 10 ] || { echo "FAILED: $kinds fingerprints, not 10:"; for db in folder/*.db; do alike "$db"; done; failed=$((failed + 1)); }
expect 'the traces of a folder' report folder --limit 1 <<'END'
times  first                last                   worst  open          fingerprint
-----  -------------------  -------------------  -------  ------------  ----------------------------------------
    2  2023-11-14 22:13:21  2023-11-14 22:15:01  40.2 ms  folder/a1.db  offcpu|lock contention|thread|relay<main
END
[ "$("$STALLTRAP" report folder/ --format json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(len(r), sum(g["times"] for g in r))')" = '10 11' ] ||
    { echo 'FAILED: report of a folder in JSON'; failed=$((failed + 1)); }
echo text >folder/text.db
"$STALLTRAP" report folder >out 2>err && grep -q 'relay<main' out && grep -q "folder/text.db' is not a trace database" err ||
    { echo 'FAILED: a folder with a file that is no trace'; cat out err; failed=$((failed + 1)); }
"$STALLTRAP" report odd >out 2>&1 && { echo 'FAILED: an empty folder'; failed=$((failed + 1)); }
grep -q "'odd' holds no trace databases" out || { echo 'FAILED: what an empty folder is told'; cat out; failed=$((failed + 1)); }
[ "$failed" = 0 ]
