#!/bin/bash
# A program waits a thousand times in the same place and logs how long: each wait is one call of that length in the trace, none is the
# sum of two, and what may be several calls or a part of one says so.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"

"$STALLTRAP" arm --source sample --every-switch --ring 16M -o waits -- "$programs/timed_waits" 800 >out 2>arm.err || fail "arm ends with $?" arm.err
grep -E '^read [0-9]+ [0-9]+ [0-9]+$' out >truth
python3 "$SOURCE/tests/cli/check_waits.py" waits.1.db truth || fail "the calls are not what the program did"

# A system call whose entry and exit are known is one call from the one to the other, however often it waited in it.
cat >slow.py <<'EOF'
import os, time
r, w = os.pipe()
if os.fork() == 0:
    os.close(w)
    while os.read(r, 65536):
        time.sleep(0.002)
    os._exit(0)
for i in range(20):
    os.write(w, b"x" * 500000)
EOF
"$STALLTRAP" arm --source sample --every-switch --syscalls --ring 16M -o writes -- python3 slow.py >out 2>arm.err || fail "arm ends with $?" arm.err
sql writes.1.db "WITH e AS (SELECT *, lead(time_ns) OVER w AS end_ns, lead(detail) OVER w AS result FROM mark WHERE name IN ('syscall', 'sysret')
    WINDOW w AS (PARTITION BY thread_id ORDER BY time_ns))
    SELECT count(*), sum((SELECT count(*) FROM offcpu o WHERE o.thread_id = e.thread_id AND NOT preempted AND o.start_ns >= time_ns AND o.end_ns <= e.end_ns) > 1),
    sum((SELECT count(*) FROM calls c WHERE c.thread_id = e.thread_id AND c.start_ns = time_ns AND c.end_ns = e.end_ns AND c.function LIKE '%sys_write' AND NOT c.flags & 192))
    FROM e WHERE result = 'write = 500000'" >counts
IFS=, read -r writes waited whole <counts
echo "$writes long writes, $waited with several waits, $whole of them one call"
[ "$writes" -eq 20 ] && [ "$waited" -ge 15 ] && [ "$whole" -ge "$waited" ] || fail "a system call is not one call" counts
