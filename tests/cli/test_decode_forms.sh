#!/bin/bash
# decode reads a recording in every form that perf gives it, and the same comes out: pipe, compressed, a directory; raw trace with
# images, 64 and 32 bits. Cut short anywhere, it is told or decoded up to there, and no crash.
set -u
. "$SOURCE/tests/cli/lib.sh"

# same NAME FILE: decodes to the calls of the snapshot
same() {
    "$STALLTRAP" decode --dump calls "$2" >"$1.calls" 2>"$1.err" || fail "$1: decode ends with $?" "$1.err"
    cmp -s whole.calls "$1.calls" || fail "$1: the calls differ: $(diff whole.calls "$1.calls" | head -n 3)"
    "$STALLTRAP" decode --stats "$2" 2>"$1.err" | jq -S 'del(.seconds)' >"$1.stats"
    cmp -s whole.stats "$1.stats" || fail "$1: the counts differ" "$1.stats"
}

"$STALLTRAP" arm --source step --no-decode --ring 16M -o x -- "$programs/nest" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
"$STALLTRAP" decode --dump calls x.1.data >whole.calls || fail "decode ends with $?"
[ "$(lines ' call .*leaf' whole.calls)" = 18 ] || fail "the calls of leaf are not 18"
"$STALLTRAP" decode --stats x.1.data | jq -S 'del(.seconds)' >whole.stats

perf inject -i x.1.data -o - >pipe.data 2>inject.err || fail "perf inject ends with $?" inject.err
[ "$(head -c 16 pipe.data | od -An -tu1 -j8 -N1 | tr -d ' ')" = 16 ] || fail "that is not pipe form"
same pipe pipe.data
same stdin /dev/stdin <pipe.data
python3 "$SOURCE/tests/cli/compress_recording.py" pipe.data compressed.data || fail "not compressed"
[ "$(wc -c <compressed.data)" -lt "$(wc -c <pipe.data)" ] || fail "compressed, it is not smaller"
same compressed compressed.data
mkdir folder
cp x.1.data folder/data
same directory folder

# Cut short: the part that is there is decoded, or the message names the file.
for form in x.1.data pipe.data compressed.data; do
    size=$(wc -c <$form)
    for ((i = 1; i < 40; i++)); do
        head -c $((size * i / 40)) $form >cut.data
        timeout 600 "$STALLTRAP" decode --dump calls cut.data >cut.calls 2>cut.err
        status=$?
        [ $status -eq 0 ] || { [ $status -eq 1 ] && grep -q cut.data cut.err; } || fail "$form cut at $i/40: ends with $status" cut.err
        ! grep -q 'Sanitizer\|runtime error' cut.err || fail "$form cut at $i/40" cut.err
    done
done

# raw NAME BITS ADDRESS PROGRAM: FROM, TO and KIND of all branches within the program are those of the snapshot
raw() {
    local record aux size images=() offset file_size address
    record=$(perf script -D -i "$1.data" 2>/dev/null | grep -a 'PERF_RECORD_AUXTRACE size' | head -n 1)
    read -r aux size < <(sed -E 's/.* (0x[0-9a-f]+) \[0x30\].* size: (0x[0-9a-f]+) .*/\1 \2/' <<<"$record")
    tail -c +$((aux + 0x30 + 1)) "$1.data" | head -c $((size)) >"$1.pt"
    while read -r offset address file_size; do
        images+=(--image "$3:$offset:$file_size@$address")
    done < <(readelf -lW "$3" | awk '$1 == "LOAD" && /R E/ {print $2, $3, $5}')
    "$STALLTRAP" decode --dump branches "$1.data" 2>dump.err | awk '{print $4, $5, $6}' >"$1.known"
    "$STALLTRAP" decode --raw "$1.pt" "${images[@]}" --cpu 6/94/3 --bits "$2" --dump branches 2>dump.err | awk '{print $4, $5, $6}' >"$1.found"
    [ "$(wc -l <"$1.known")" -gt 30 ] || fail "$1: too few branches"
    diff "$1.known" "$1.found" >diff || fail "$1: raw trace gives other branches" diff dump.err
}

"$STALLTRAP" arm --source step --no-decode -o code32 -- "$programs/code32" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
mv code32.1.data code32.data
raw code32 32 "$programs/code32"
"$STALLTRAP" arm --source step --no-decode -o code64 -- "$programs/code64" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
mv code64.1.data code64.data
raw code64 64 "$programs/code64"
