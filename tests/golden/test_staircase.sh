#!/bin/bash
# A trace that is damaged in many places: every damage is a gap, or few, with its cause; behind it the stack begins anew, and no frame
# from before stays open, so that nothing is called by what it never is (a staircase, recursion that never was).
set -u
. "$SOURCE/tests/cli/lib.sh"

"$STALLTRAP" arm --source step --no-decode --ring 16M -o x -- "$programs/nest" 100 >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
"$STALLTRAP" decode x.1.data -o whole.db >out || fail "decode ends with $?"
[ "$(sql whole.db "SELECT count(*) FROM calls WHERE function = 'leaf'")" = 600 ] || fail "the calls of leaf are not 600"

python3 - x.1.data damaged.data 12 <<'EOF' || fail "not damaged"
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at, size = struct.unpack_from("<QQ", data, 40)
end = at + size
while at < end:
    kind, _, length = struct.unpack_from("<IHH", data, at)
    if kind == 71:  # PERF_RECORD_AUXTRACE
        (trace,) = struct.unpack_from("<Q", data, at + 8)
        break
    at += length
begin, places = at + length, int(sys.argv[3])
psbs = [begin - 16]
while (found := data.find(b"\2\x82" * 8, psbs[-1] + 16, begin + trace)) >= 0:
    psbs.append(found)
for this, behind in list(zip(psbs[1:], psbs[2:]))[-places:]:  # packets that there are not, in the middle of the last stretches: nest's own calls
    where = (this + behind) // 2
    data[where : where + 24] = b"\0" * 8 + b"\2" * 16  # within any packet no time far off
open(sys.argv[2], "wb").write(data)
EOF
"$STALLTRAP" decode damaged.data -o damaged.db >out 2>err || fail "decode of the damaged trace ends with $?" err

gaps=$(sql damaged.db 'SELECT count(*) FROM gaps')
[ "$gaps" -ge 12 ] && [ "$gaps" -le 24 ] || fail "12 damages of 24 bytes are $gaps gaps"
[ "$(sql damaged.db "SELECT count(*) FROM gaps WHERE reason = 'bad packet' AND detail LIKE 'unknown % at trace offset %'")" -ge 12 ] ||
    fail "a gap without its cause: $(sql damaged.db 'SELECT DISTINCT reason, detail FROM gaps')"
# About half of the stretches that have them is left.
leaves=$(sql damaged.db "SELECT count(*) FROM calls WHERE function = 'leaf'")
[ "$leaves" -gt 200 ] && [ "$leaves" -lt 500 ] || fail "$leaves of 600 calls of leaf are left"

# Who calls whom: the same pairs as in the whole trace. A frame that was found late has no caller.
pairs="SELECT DISTINCT p.function, c.function FROM calls c JOIN calls p ON p.id = c.parent_id WHERE c.module = 'nest' AND p.module = 'nest'"
sql whole.db "$pairs" | sort >known
sql damaged.db "$pairs" | sort >found
[ -z "$(comm -13 known found)" ] || fail "calls that never were: $(comm -13 known found)"
deepest="SELECT max(depth) FROM calls"
[ "$(sql damaged.db "$deepest")" -le "$(sql whole.db "$deepest")" ] || fail "a staircase: $(sql damaged.db "$deepest") deep"
across=$(sql damaged.db "SELECT count(*) FROM calls c JOIN gaps g ON g.thread_id = c.thread_id WHERE c.start_ns < g.start_ns AND c.end_ns > g.end_ns")
[ "$across" = 0 ] || fail "$across calls go on over a gap"
bash "$SOURCE/tests/golden/check_db.sh" damaged.db || fail "the database breaks a rule"
