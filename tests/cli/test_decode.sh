#!/bin/bash
# decode: what it writes and says, and what bad input comes to. The snapshot is made by the step source.
. "$(dirname "$0")/lib.sh"

# try STATUS MESSAGE OPTION...: decode must end so, say so, and leave nothing new
try() {
    local expected=$1 message=$2 before status
    shift 2
    before=$(ls -A)
    timeout -k 5 600 "$STALLTRAP" decode "$@" >.try/out 2>.try/err
    status=$?
    [ $status -eq "$expected" ] || fail "decode $*: exit status $status, expected $expected" .try/err
    grep -qE -- "$message" .try/err || fail "decode $*: no '$message'" .try/err
    [ "$(ls -A)" = "$before" ] || fail "decode $* left files: $(ls -A)"
}
mkdir .try

# A copy: who is nobody, at the end, may not enter the folder of the build everywhere.
cp "$programs/recursion" .
"$STALLTRAP" arm --source step --no-decode -o x -- "$work/recursion" >arm.out 2>arm.err || fail "arm ends with $?" arm.err

# The database stands beside the snapshot, is private, and is replaced only on demand.
"$STALLTRAP" decode x.1.data >out 2>err || fail "decode ends with $?" err
grep -qE '^wrote x\.1\.db \([0-9,]+ calls, .* of history\)$' out || fail "no 'wrote' line" out
[ "$(stat -c %a x.1.db)" = 600 ] || fail "mode of the database: $(stat -c %a x.1.db)"
bash "$SOURCE/tests/golden/check_db.sh" x.1.db || fail "the database breaks a rule"

# How good the times are: as many points as steps that told the time, at their mean distance.
timing=$(sqlite3 -readonly x.1.db "SELECT (SELECT value FROM meta WHERE key = 'time_points'), (SELECT value FROM meta WHERE key = 'resolution_ns'),
    (SELECT max(end_ns) - min(start_ns) FROM calls)")
awk -F'|' '{exit !($1 > 1000 && $2 * ($1 - 1) > 0.9 * $3 && $2 * ($1 - 1) < 1.1 * $3)}' <<<"$timing" || fail "timing resolution: $timing"
was=$(stat -c %i x.1.db)
try 1 "'x\.1\.db' is there already" x.1.data
grep -q . x.1.db || fail "the database is gone"
"$STALLTRAP" decode x.1.data --force >out || fail "--force: $?"
[ "$(stat -c %i x.1.db)" != "$was" ] || fail "--force did not replace the database"
"$STALLTRAP" decode x.1.data -o other.db >/dev/null || fail "-o: $?"
sql other.db 'SELECT count(*) FROM calls' | grep -qx "$(sql x.1.db 'SELECT count(*) FROM calls')" || fail "two decodings differ"

# Counts agree with the rows, and are JSON.
"$STALLTRAP" decode x.1.data --stats -o stats.db >stats 2>err || fail "--stats ends with $?" err
python3 - "$(sql stats.db 'SELECT count(*) FROM call')" <<'EOF' || fail "--stats" stats
import json, sys
s = json.load(open("stats"))
assert s["calls"] == int(sys.argv[1]) and s["errors"] == 0 and s["gaps"] == 0 and s["bytes"] > 0, s
# What is still open at the end, main and what called it, has not returned; the loader ends in jumps. All else has.
assert 0 <= s["branches"]["call"] - s["branches"]["return"] <= 12, s
assert s["instructions"] > s["branches"]["taken"] > s["branches"]["call"], s
EOF
calls=$("$STALLTRAP" decode x.1.data --stats | python3 -c 'import json, sys; print(json.load(sys.stdin)["branches"]["call"])')
[ "$("$STALLTRAP" decode x.1.data --dump calls | awk '$6 ~ /^call/' | wc -l)" = "$calls" ] || fail "--dump and --stats count calls differently"
"$STALLTRAP" decode x.1.data --dump packets | grep -q ' psb' || fail "--dump packets shows no psb"
rm -f stats stats.db err

# Words.
try 2 'which snapshot' --stats
try 2 "one snapshot at a time: what is 'y'" x.1.data y
try 2 "did you mean 'calls'" x.1.data --dump call
try 2 "did you mean '--stats'" x.1.data --stat_s
try 2 'go with --raw' --image f@0x1000 x.1.data
try 2 "what is 'x.1.data'" --raw f x.1.data
try 2 'leave out -o' x.1.data --dump calls -o z.db

# Files.
try 1 "no-such.data.*No such file" no-such.data
echo 'This is no recording, but a text that is long enough to be taken for one: it has more bytes than a header.' >text
try 1 "text: .*no perf.data" text
: >empty
try 1 "empty" empty
mkdir folder
try 1 "folder" folder
try 1 "'folder' is there already|'folder': it is a folder" x.1.data -o folder
try 1 'no-such/y.db' x.1.data -o no-such/y.db
try 1 '/proc/y.db' x.1.data -o /proc/y.db

# Cut short: the message tells the file. Every length (of a large one every page), and allocations and system calls that fail: see decode_bad.c.
size=$(stat -c %s x.1.data)
for n in 0 1 7 8 103 104 200 $((size / 2)) $((size - 1)); do
    head -c "$n" x.1.data >cut.data
    try 1 "cut.data: " cut.data
done
mkdir bad
cp x.1.data bad/whole.data
cp x.1.data bad/cut.data
python3 - <<'EOF' || fail "not made large"
import struct
data = bytearray(open("x.1.data", "rb").read())
at, size = struct.unpack_from("<QQ", data, 40)
end = at + size
while struct.unpack_from("<I", data, at)[0] != 71:  # PERF_RECORD_AUXTRACE
    at += struct.unpack_from("<H", data, at + 6)[0]
length, (trace, offset) = struct.unpack_from("<H", data, at + 6)[0], struct.unpack_from("<QQ", data, at + 8)
more = bytearray()
while len(more) < 4 << 20:  # the ring goes on with the same again
    offset += trace
    record = data[at : at + length + trace]
    struct.pack_into("<Q", record, 16, offset)
    more += record
data[at + length + trace : at + length + trace] = more
struct.pack_into("<Q", data, 48, size + len(more))
features = end + len(more)  # behind the data stands what the header's bits tell of
for i in range(bin(int.from_bytes(data[72:104], "little")).count("1")):
    (place,) = struct.unpack_from("<Q", data, features + 16 * i)
    struct.pack_into("<Q", data, features + 16 * i, place + len(more))
open("bad/large.data", "wb").write(data)
EOF
"$STALLTRAP" decode --stats bad/large.data >out 2>err || fail "the large one: decode ends with $?" err
[ "$(jq .branches.call out)" -gt 10000 ] || fail "the large one has few calls" out
(
    cd bad || exit 1
    timeout 600 "$BUILD/tests/decode_bad" memory whole.data && timeout 600 "$BUILD/tests/decode_bad" calls whole.data &&
        timeout 600 "$BUILD/tests/decode_bad" cut cut.data && timeout 600 "$BUILD/tests/decode_bad" pages large.data
) 2>bad.err || fail "decode under adverse conditions: $?" bad.err
[ "$(ls -A bad)" = "$(printf 'cut.data\nlarge.data\nwhole.data')" ] || fail "files are left: $(ls -A bad)"

# A damaged size: the message names the place and the record.
python3 - <<'EOF' || fail "no MMAP2 record"
import struct
data = bytearray(open("x.1.data", "rb").read())
at, size = struct.unpack_from("<QQ", data, 40)
end = at + size
while at < end:
    kind, _, length = struct.unpack_from("<IHH", data, at)
    if kind == 10:  # PERF_RECORD_MMAP2
        break
    at += length + (struct.unpack_from("<Q", data, at + 8)[0] if kind == 71 else 0)  # PERF_RECORD_AUXTRACE: its trace is not counted
else:
    raise SystemExit(1)
struct.pack_into("<H", data, at + 6, 4)
open("bad.data", "wb").write(data)
open("place", "w").write(f"at offset {at:#x}: MMAP2 \\(10\\)")
EOF
try 1 "bad.data: $(cat place)" bad.data

# No room: what was begun is removed.
(
    trap '' XFSZ # the write fails
    ulimit -f 64
    try 1 'full.db' x.1.data -o full.db
) || exit 1
if [ "$(id -u)" = 0 ]; then
    mkdir full && mount -t tmpfs -o size=64k tmpfs full || fail "no small file system"
    try 1 "full/x.db.*(disk is full|No space left)" x.1.data -o full/x.db
    [ -z "$(ls -A full)" ] || fail "on the full disk is left: $(ls -A full)"
    umount full
fi

# No privilege is needed.
if [ "$(id -u)" = 0 ]; then
    chmod 755 . && mkdir -m 777 public && install -m 644 x.1.data public && install -m 755 "$STALLTRAP" public/stalltrap-copy
    (cd public && setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
        ./stalltrap-copy decode x.1.data -o mine.db >/dev/null) || fail "decode as nobody ends with $?"
    [ "$(sql public/mine.db 'SELECT count(*) FROM call')" = "$(sql x.1.db 'SELECT count(*) FROM call')" ] || fail "nobody gets other calls"
fi

# The program's file is gone, or another one: its code is a gap with a name, not an error and not a guess.
cp "$programs/recursion" ./prog
"$STALLTRAP" arm --source step --no-decode -o gone -- ./prog >arm.out 2>arm.err || fail "arm ends with $?" arm.err
rm prog
"$STALLTRAP" decode gone.1.data >out || fail "decode without the program's file ends with $?"
sql gone.1.db "SELECT reason || ' ' || detail FROM gaps" >gaps
grep -q 'prog' gaps || fail "no gap names the program" gaps
few_gaps() { # told when the code is entered, not for every branch in it
    [ "$(wc -l <gaps)" -le 10 ] || fail "$(wc -l <gaps) gaps for one file" gaps
}
few_gaps
cp "$programs/nest" ./prog
"$STALLTRAP" decode gone.1.data --force >out || fail "decode with another file ends with $?"
sql gone.1.db "SELECT reason || ' ' || detail FROM gaps" >gaps
grep -q '^"*stale file .*prog' gaps || fail "no gap says that the program is another one" gaps
few_gaps
sql gone.1.db "SELECT DISTINCT function FROM calls WHERE module = 'prog'" | grep -qE 'leaf|outer' && fail "names of another program"
exit 0
