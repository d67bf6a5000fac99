#!/bin/bash
# A machine that has been up for months: its TSC no longer fits into the 56 bits of a packet. The same calls at the same times
# come out, of decode and of perf.
set -u
. "$SOURCE/tests/cli/lib.sh"

"$STALLTRAP" arm --source step --no-decode --ring 16M -o x -- "$programs/nest" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
"$STALLTRAP" decode --dump calls x.1.data >young.calls || fail "decode ends with $?"
"$STALLTRAP" decode --dump branches x.1.data >young.branches || fail "decode ends with $?"
[ "$(lines ' call .*leaf' young.calls)" = 18 ] || fail "the calls of leaf are not 18"
perf script -i x.1.data --itrace=cr --ns -F tid,time,ip,addr,flags >young.perf 2>perf.err || fail "perf ends with $?" perf.err
[ "$(lines call young.perf)" -ge 18 ] || fail "perf has no calls" young.perf perf.err

for turns in 1 3; do
    python3 "$SOURCE/tests/cli/age_recording.py" x.1.data old.data $turns || fail "the recording was not aged"
    for what in calls branches; do
        for option in --threads=1 --reference; do
            "$STALLTRAP" decode $option --dump $what old.data >old.$what || fail "decode ends with $?"
            cmp -s young.$what old.$what || fail "$turns turns, $option: $what differ: $(diff young.$what old.$what | head -n 4)"
        done
    done
    "$STALLTRAP" decode --force --bare -o old.db old.data 2>decode.err || fail "decode ends with $?" decode.err
    "$STALLTRAP" decode --force --bare -o young.db x.1.data 2>decode.err || fail "decode ends with $?" decode.err
    for db in old young; do
        sqlite3 $db.db "SELECT start_ns, end_ns, function FROM calls ORDER BY id; SELECT value FROM meta WHERE key = 'origin_perf_ns';
            SELECT thread_id, start_ns, end_ns FROM slice" >$db.rows || fail "$db.db cannot be read"
    done
    cmp -s young.rows old.rows || fail "$turns turns: the databases differ: $(diff young.rows old.rows | head -n 4)"
    perf script -i old.data --itrace=cr --ns -F tid,time,ip,addr,flags >old.perf 2>perf.err || fail "perf ends with $?" perf.err
    cmp -s young.perf old.perf || fail "$turns turns: perf's calls differ: $(diff young.perf old.perf | head -n 4)"
done
