#!/bin/bash
# Stored recordings of the sample source (recordings/record.sh made them, of recordings/newborn.c): what is decoded of them is what perf
# lists of the same files (NAME.perf.zst, by check_recording.py), and row by row what it was before (NAME.rows).
#   command   a program from its first instruction, in rings of CPUs: threads that are born, wait, are woken by each other and by timers
#   attached  the same program, found running, in rings of threads, with every system call; a trigger fired. A thread's ring comes some
#             hundred microseconds after its birth here
# UPDATE=1 writes what comes out as the new expectation of the rows; perf's listing stays.
set -u
. "$SOURCE/tests/cli/lib.sh"
here=$SOURCE/tests/golden/recordings
# The program, where the recordings say that it was.
mkdir -p root/opt/stalltrap-recording
zstd -dq "$here/newborn.zst" -o root/opt/stalltrap-recording/newborn || fail "no zstd"

rows() { # DB
    while IFS= read -r query; do
        echo "# $query"
        sqlite3 "$1" "$query"
    done <<'END'
SELECT pid, tid, name, calls, start_ns, end_ns FROM threads ORDER BY id
SELECT tid, start_ns, duration_ns, self_ns, flags, depth, function, module FROM calls ORDER BY id
SELECT tid, o.start_ns, o.end_ns, preempted, (SELECT function FROM calls c WHERE c.id = o.call_id) FROM offcpu o JOIN thread t ON t.id = thread_id ORDER BY o.id
SELECT tid, time_ns, m.name, detail FROM mark m LEFT JOIN thread t ON t.id = thread_id ORDER BY m.id
SELECT tid, g.cpu, g.start_ns, g.end_ns, reason, detail FROM gaps g LEFT JOIN thread t ON t.id = thread_id ORDER BY g.id
SELECT id, trigger, tid, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason FROM stalls ORDER BY id
SELECT stall_id, key, value FROM stall_attr ORDER BY stall_id, key, value
SELECT key, value FROM meta WHERE key IN ('source', 'source_text', 'samples', 'switch_samples', 'sample_period_ns', 'target', 'snapshot_reason', 'snapshot_text', 'lost_events') ORDER BY key
END
    "$STALLTRAP" report "$1"
}

for name in command attached; do
    zstd -dq "$here/$name.data.zst" -o $name.data || fail "$name.data"
    strings -n 4 $name.data | grep -E '/(work|home|root|var/tmp|tmp)/' && fail "$name names files of the machine it was made on"
    "$STALLTRAP" decode --symfs root $name.data -o $name.db >out 2>err || fail "$name: decode ends with $?" out err
    zstd -dcq "$here/$name.perf.zst" | python3 "$SOURCE/tests/golden/check_recording.py" $name.db >checked 2>&1 || fail "$name: perf lists something else" checked
    sed "s/^/$name: /" checked
    rows $name.db >$name.rows 2>&1
    ! grep '^Error' $name.rows || fail "$name: a question cannot be asked"
    if [ -n "${UPDATE:-}" ]; then
        cp $name.rows "$here/"
    else
        diff -u "$here/$name.rows" $name.rows >differs || fail "$name: rows differ" differs
    fi
done
