#!/bin/bash
# 8 MB of PSB+ and MTC packets with tracing off, as a CPU sends that waits: decoded in about the time that libipt alone takes, by
# one thread and by two.
set -u
. "$SOURCE/tests/cli/lib.sh"

python3 "$SOURCE/tests/cli/psb_storm.py" storm.pt 8000000 || fail "no trace"

# cpu OPTION...: seconds of processor; the counts are in stats
cpu() {
    local TIMEFORMAT='%U %S'
    { time timeout 100 "$STALLTRAP" decode --stats --raw storm.pt --image /bin/true@0x1000 --cpu 6/85/4 --mtc-freq 3 --nom-freq 37 \
        --cpuid15 2/308 "$@" >stats 2>decode.err; } 2>time || fail "decode $* ends with $?" decode.err
    [ "$(jq '.errors + .gaps + .slow' stats)" = 0 ] || fail "decode $*: errors" stats
    [ "$(jq .bytes stats)" -ge 8000000 ] || fail "decode $*: not all of it" stats
    awk '{print $1 + $2}' time
}

reference=$(cpu --reference) || exit 1
for threads in 1 2; do
    ours=$(cpu --threads=$threads) || exit 1
    echo "$threads thread(s): $ours s of processor, libipt alone $reference s"
    awk -v a="$ours" -v b="$reference" 'BEGIN {exit !(a < 8 * b + 1)}' || fail "$threads thread(s): $ours s, where libipt alone takes $reference s"
done
