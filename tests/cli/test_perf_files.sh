#!/bin/bash
# Recordings that perf made, read on the machine that made them.
. "$(dirname "$0")/arm_lib.sh"

count() { # DB CONDITION: how many functions
    "$STALLTRAP" query "$1" "SELECT count(*) FROM functions WHERE $2" --format csv | tail -n 1
}

run "samples without call chains are named as such"
perf record -q -F 999 -a -o plain.data -- sleep 0.3 2>/dev/null || fail "perf record ends with $?"
"$STALLTRAP" decode plain.data -o plain.db >out 2>err || fail "decode ends with $?" err
has "message" 'samples hold no call chains, so there are no calls: record with .perf record -g' err

run "kernel functions of a recording of this boot have their names"
perf record -q -g -F 5000 -o chains.data -- find /usr/share /usr/lib -name '*.none' >/dev/null 2>&1 || fail "perf record ends with $?"
"$STALLTRAP" decode chains.data -o chains.db >out 2>err || fail "decode ends with $?" err
# perf's names of the frames: ours must be among them.
perf script -i chains.data -F ip,sym 2>/dev/null | awk 'NF == 2 { print $2 }' | sort -u >perf.names
"$STALLTRAP" query chains.db "SELECT DISTINCT function FROM functions WHERE kernel AND module = '[kernel]' AND function NOT LIKE '[%'" \
    --format csv | tail -n +2 | sort -u >our.names
[ "$(wc -l <our.names)" -ge 10 ] || fail "only $(wc -l <our.names) kernel functions have names"
unknown=$(comm -23 our.names perf.names | wc -l)
[ $((unknown * 20)) -le "$(wc -l <our.names)" ] || fail "$unknown kernel functions that perf does not name"
is "functions named after the mapping" 0 \
    "$(count chains.db "function LIKE '[kernel.kallsyms]%' AND calls * 10 > (SELECT sum(calls) FROM functions WHERE kernel)")"

run "symbols of another boot are not taken"
python3 - <<'EOF'
data = bytearray(open("chains.data", "rb").read())
at = data.find(b"[kernel.kallsyms]_text\0")
assert at > 0
# PERF_RECORD_MMAP: address, length, pgoff, name
pgoff = int.from_bytes(data[at - 8:at], "little")
data[at - 8:at] = (pgoff + 0x200000).to_bytes(8, "little")
open("moved.data", "wb").write(data)
EOF
"$STALLTRAP" decode moved.data -o moved.db >out 2>err || fail "decode ends with $?" err
is "kernel functions with names" 0 "$(count moved.db "kernel AND module = '[kernel]' AND function NOT LIKE '[%'")"
summary
