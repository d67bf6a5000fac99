#!/bin/bash
# test_decode.sh RECORDINGS: what fixtures.sh brought out of the machine, decoded by stalltrap and by perf: the same branches, with the
# same names, and the same calls in the database; nest's calls are its known tree. STALLTRAP and SOURCE are in the environment.
set -euo pipefail
cd "$1/user"
golden=$SOURCE/tests/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 failed=0

bad() { # MESSAGE [FILE]
    echo "FAILED: $1"
    [ $# -lt 2 ] || tail -n 20 "$2"
    failed=$((failed + 1))
}

# KNOWN: a CYC packet counts the cycles since the one before it. We count them from the MTC or TSC packet between the two, if there is one: a time
# is too late by up to what is left until the next of those. The machine sends no CYC packet in front of them, as processors do.
within_of() { # NAME
    case $1 in
    *-cyc* | *-kernel* | *-all*) echo 20000000 ;;
    *) echo 0 ;;
    esac
}

# compare MODE LISTING OURS [KALLSYMS]
compare() {
    python3 "$golden/normalize_calls.py" --times-within "$(within_of "$2")" "$@" >"$work/compared" 2>&1 || bad "$2, $1: perf and decode differ" "$work/compared"
    n=$((n + 1))
}

# decode NAME OPTION...
decode() {
    local name=$1
    shift
    timeout 100 "$STALLTRAP" decode "$name.data" --buildid-dir "$PWD/debug" "$@" 2>"$work/err" ||
        bad "decode $name.data $* ends with $?" "$work/err"
}

check_recording() { # NAME LISTING calls|branches
    local name=$1 kallsyms=()
    [ ! -e "$name.data/kcore_dir/kallsyms" ] || kallsyms=("$name.data/kcore_dir/kallsyms")
    decode "$name" --dump "$3" >"$work/dump"
    if [ ! -s "$2" ]; then # nothing was traced in it
        [ ! -s "$work/dump" ] || bad "$name: perf lists nothing" "$work/dump"
        return
    fi
    compare gaps "$2" "$work/dump" "${kallsyms[@]}"
}

check_database() { # NAME
    local name=$1 db=$work/$1.db rounds
    decode "$name" -o "$db" >"$work/out"
    bash "$golden/check_db.sh" "$db" >"$work/out" || bad "$name.db breaks a rule" "$work/out"
    case $name in
    *-kernel | *-all-* | *-snapshot | *-switch-* | *-overflow | *-untimed) ;; # frames in the kernel, or not from the beginning
    *) compare rows "$name.cr" "$db" ;;
    esac
    rounds=$(expr "$name" : 'nest-\([0-9]*\)') || return 0
    case $name in
    *-overflow) ;; # calls are missing
    *) python3 "$golden/check_nest_tree.py" "$db" "$rounds" >"$work/out" 2>&1 || bad "$name: not nest's tree" "$work/out" ;;
    esac
}

# What waits in a file, for lack of memory, comes out as it would else.
check_spilled() { # NAME
    decode "$1" --memory 1K -o "$work/spilled.db" >"$work/out"
    for table in call offcpu gap symbol tile; do
        cmp -s <(sqlite3 "$work/$1.db" "SELECT * FROM $table") <(sqlite3 "$work/spilled.db" "SELECT * FROM $table") ||
            bad "$1, --memory 1K: another table $table"
    done
    [ "$(sqlite3 "$work/spilled.db" "SELECT count(*) > 50000 FROM call")" = 1 ] || bad "$1: too small to be of use here"
}

for listing in *.cr; do
    check_recording "${listing%.cr}" "$listing" calls
    check_database "${listing%.cr}"
done
check_spilled nest-50-all-cyc
for listing in *.b; do
    check_recording "${listing%.b}" "$listing" branches
done
[ $n -ge 28 ] || bad "only $n comparisons in $1"
echo "$n comparisons, $failed failed"
[ $failed = 0 ]
