#!/bin/bash
# Traces of real processors: FOLDER holds a folder NAME each, with trace.pt, images.list (as for --images) and expected.json: what
# libipt's instruction decoder finds in it ("instructions", "classes", "errors", and "decoder_config", the options of decode).
# Decoded by both walks, beside that decoder: the same branches up to the first error, and where there is none the same counts; by
# the fast walk alone, where code is missing and the trace is cut too, even with more state in its PSB+, as other hosts have it.
# usage: real_traces.sh FOLDER    STALLTRAP is the program, INSN_WALK the reference; ST_REAL_TRACES stands before FOLDER
set -u
set -- "${ST_REAL_TRACES:-$1}"
[ -d "$1" ] || { echo "skipped: no traces of real processors in $1 (ST_REAL_TRACES names their folder)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 n=0

bad() {
    echo "FAILED: $1"
    failed=1
}

# To the first error: "FROM TO" of each branch that was taken, tracing's starts and ends left out.
to_first_gap() {
    awk '$6 == "gap" {exit} $4 != "0" && $5 != "0" && $6 !~ /^tr-/ {print $4, $5}'
}

# The same branches with more in each PSB+, and the fast walk is left no more often.
more_state() { # DIR NAME SLOW OPTION...
    local dir=$1 name=$2 slow=$3 walk
    shift 3
    "$STALLTRAP" decode --raw "$dir/trace.pt" --images "$dir/images.list" "$@" --dump packets |
        python3 "$(dirname "$0")/more_state.py" "$dir/trace.pt" "$work/more.pt" || bad "$name: no more state"
    "$STALLTRAP" decode --raw "$dir/trace.pt" --images "$dir/images.list" "$@" --dump branches 2>"$work/err" | sed 's/offset 0x[0-9a-f]*//' >"$work/less"
    for walk in "" --reference; do
        # shellcheck disable=SC2086
        "$STALLTRAP" decode $walk --raw "$work/more.pt" --images "$dir/images.list" "$@" --dump branches 2>"$work/err" | sed 's/offset 0x[0-9a-f]*//' >"$work/more"
        cmp -s "$work/less" "$work/more" || bad "$name $walk, with VMCS and PIP in its PSB+: other branches: $(diff "$work/less" "$work/more" | head -n 4)"
    done
    "$STALLTRAP" decode --raw "$work/more.pt" --images "$dir/images.list" "$@" --stats >"$work/more" 2>"$work/err"
    [ "$(jq .slow "$work/more")" = "$slow" ] || bad "$name, with VMCS and PIP in its PSB+: left the fast walk $(jq .slow "$work/more") times, not $slow"
}

check() { # FOLDER NAME
    local dir=$1/$2 name=$2 expected=$1/$2/expected.json options walk first_errors
    mapfile -t options < <(jq -r '.decoder_config[]' "$expected")
    "$INSN_WALK" "$dir/trace.pt" <(awk -v dir="$dir" '{$1 = dir "/" $1; print}' "$dir/images.list") "${options[1]}" >"$work/insn" ||
        bad "$name: no reference"
    tail -n 1 "$work/insn" | jq .instructions | grep -qx "$(jq .instructions "$expected")" || bad "$name: the reference is not the one expected"
    sed '/^[e{]/,$d' "$work/insn" >"$work/known"
    first_errors=$(jq '[.errors[]] | add // 0' "$expected")
    for walk in "" --reference; do
        # shellcheck disable=SC2086
        "$STALLTRAP" decode $walk --raw "$dir/trace.pt" --images "$dir/images.list" "${options[@]}" --dump branches 2>"$work/err" |
            to_first_gap >"$work/found"
        cmp -s "$work/known" "$work/found" || bad "$name $walk: other branches: $(diff "$work/known" "$work/found" | head -n 4)"
        # shellcheck disable=SC2086
        "$STALLTRAP" decode $walk --raw "$dir/trace.pt" --images "$dir/images.list" "${options[@]}" --stats >"$work/stats" 2>"$work/err" ||
            bad "$name $walk: decode ends with $?"
        if [ "$first_errors" = 0 ]; then
            jq -S '{instructions} + (.classes | del(.other))' "$expected" >"$work/a"
            jq -S --slurpfile e "$expected" '. as $s | {instructions} + ($e[0].classes | del(.other) | with_entries(.value = $s.branches[.key]))' \
                "$work/stats" >"$work/b"
            cmp -s "$work/a" "$work/b" || bad "$name $walk: other counts: $(diff "$work/a" "$work/b")"
            [ "$(jq '.errors + .gaps' "$work/stats")" = 0 ] || bad "$name $walk: errors, and the reference has none"
        else # behind an error decoding goes on at the next place that allows it, not at the next PSB: no less is found
            [ "$(jq .instructions "$work/stats")" -ge "$(jq .instructions "$expected")" ] || bad "$name $walk: fewer instructions"
            [ "$(jq .errors "$work/stats")" -ge 1 ] || bad "$name $walk: no error, and the reference has $first_errors"
            [ "$(jq .errors "$work/stats")" -le $((first_errors + 1)) ] || bad "$name $walk: more errors"
        fi
        n=$((n + 1))
    done
    "$STALLTRAP" decode --raw "$dir/trace.pt" --images "$dir/images.list" "${options[@]}" --stats 2>"$work/err" >"$work/stats"
    more_state "$dir" "$name" "$(jq .slow "$work/stats")" "${options[@]}"
    [ "$(jq .slow "$work/stats")" = 0 ] || bad "$name: left the fast walk: $(jq -c .slow_by "$work/stats")"
    echo "$name: $(jq -c '{instructions, calls: .branches.call, errors}' "$work/stats"), the reference: $(
        jq -c '{instructions, calls: (.classes.call // 0), errors}' "$expected"), $(wc -l <"$work/known") branches before the first error"
}

for file in "$1"/*/expected.json; do
    check "$1" "$(basename "$(dirname "$file")")"
done
[ $n -gt 0 ] || bad "no traces in $1"
exit $failed
