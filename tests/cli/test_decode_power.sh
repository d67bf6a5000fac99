#!/bin/bash
# Power events of a trace are marks of its database, and listed: when the CPU slept, in which state, what woke it. Packets of Event Trace are
# stepped over.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=$((failed + 1)); }

# 1000 jne 1000. Tracing is off (perf's branch=0) until 9000.
python3 - <<'END'
def tsc(t): return b'\x19' + t.to_bytes(7, 'little')
psb, psbend = b'\x02\x82' * 8, b'\x02\x23'
cfe = b'\x02\x13\x01\x20'
evd = b'\x02\x53\x00' + bytes(8)
ip = lambda kind, a: bytes([kind | 6 << 5]) + a.to_bytes(8, 'little')
trace = psb + tsc(1000) + psbend + b'\x02\x22\x00\x60' + tsc(1200) + b'\x02\x62' + tsc(5000) + evd + cfe + b'\x02\xa2\x62\x01\x00\x00\x00'
trace += tsc(9000) + b'\x99\x01' + ip(0x11, 0x1000) + b'\x06' + tsc(9500) + b'\x06'
open('t.pt', 'wb').write(trace)
open('code', 'wb').write(b'\x75\xfe')
END
"$STALLTRAP" decode --raw t.pt --image code@0x1000 --cpu 6/94/3 --time 1:0:0 -o t.db 2>err || fail "decode: $(cat err)"
"$STALLTRAP" query t.db "SELECT time_ns, thread_id, name, detail FROM mark ORDER BY time_ns" --format csv >marks
diff -u - marks <<'END' || fail 'the marks'
time_ns,thread_id,name,detail
0,,asleep,MWAIT 0x60
200,,stopped,
4000,,awake,"deepest MWAIT 0x20, last 0x60, by an interrupt"
END
[ "$("$STALLTRAP" query t.db "SELECT count(*) FROM gap WHERE reason NOT IN ('truncated')" --format csv | tail -n 1)" = 0 ] || fail "gaps: $("$STALLTRAP" query t.db "SELECT * FROM gap")"
"$STALLTRAP" decode --raw t.pt --image code@0x1000 --cpu 6/94/3 --time 1:0:0 --dump branches >branches 2>err
grep -q ' power asleep: MWAIT 0x60$' branches || fail "the listing: $(cat branches)"
grep -q ' power stopped$' branches || fail "the listing: $(cat branches)"
"$STALLTRAP" decode --raw t.pt --image code@0x1000 --cpu 6/94/3 --time 1:0:0 --dump packets >packets 2>err
for line in 'pwre c7.1' 'evd type=0 0' 'cfe type=1 vector=32 ip=0' 'pwrx last=c7 deepest=c3' 'tip.pge 6:1000'; do
    grep -q "^[0-9a-f]* $line\$" packets || fail "no packet $line: $(cat packets)"
done
! grep bad packets || fail 'bad packets'
[ "$failed" = 0 ]
