#!/bin/bash
# check_arm.sh OUTDIR: what the tests of our recorder brought out of the machine (arm-lib.sh, outside()): perf's calls and ours are the
# same, and those of programs whose calls are known are these. Each folder's file `checks` has lines "NAME CHECK [ARGUMENT...]".
# Several recordings are checked at once.
# STALLTRAP and SOURCE are in the environment.
set -uo pipefail
ptvm=$(realpath "$(dirname "$0")")
cd "$1" || exit 1
out=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 n=0
shopt -s nullglob
fields=event,tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso

bad() { # MESSAGE [FILE...]
    echo "FAILED: $1"
    shift
    for file; do tail -n 20 "$file"; done
    failed=$((failed + 1))
    return 1
}

# The guest's vdso, in the form of perf's build-id cache.
keep_vdso() {
    local id
    id=$(readelf -n vdso.so | sed -n 's/.*Build ID: //p')
    [ -n "$id" ] || bad "no build id in the machine's vdso" || return
    mkdir -p "debug/[vdso]/$id" "debug/.build-id/${id:0:2}"
    cp vdso.so "debug/[vdso]/$id/vdso"
    ln -sfn "../../[vdso]/$id" "debug/.build-id/${id:0:2}/${id:2}"
}

# Whether one of the recording's checks compares our own listing.
needs_dump() { # NAME
    sed -n "s/^$1 //p" checks | grep -qvE '^(counted|pinned|nest)( |$)'
}

# Whether one of them needs perf's listing. Of a whole machine that takes minutes.
needs_perf() { # NAME
    sed -n "s/^$1 //p" checks | grep -qvE '^(delack|born|pinned)( |$)'
}

# Both listings of a recording, once.
list() { # NAME
    [ ! -e "$work/$1.db" ] || return 0
    if needs_perf "$1"; then
        list_perf "$1" || return
    fi
    if [ -e "$1.db" ]; then
        cp "$1.db" "$work/$1.db"
    elif ! "$STALLTRAP" decode "$1.data" --buildid-dir "$out/debug" -o "$work/$1.db" >"$work/said" 2>&1; then
        bad "$1: decode ends with $?" "$work/said" || return
    fi
    [ ! -e "$work/$1.perf" ] || [ ! -d "$1.data/kcore_dir" ] ||
        python3 "$ptvm/kernel_names.py" "$1.data/kcore_dir/kallsyms" "$work/$1.perf" "$work/$1.dump" "$work/$1.db" || bad "$1: kernel_names.py"
}

list_perf() { # NAME
    perf --buildid-dir "$out/debug" script --itrace=cre --ns -F $fields -i "$1.data" >"$work/$1.perf" 2>"$work/said" ||
        bad "$1: perf script ends with $?" "$work/said" || return
    [ ! -s "$work/said" ] || bad "$1: perf complains" "$work/said" || return
    [ -s "$work/$1.perf" ] || bad "$1: perf lists nothing" || return
    ! needs_dump "$1" || "$STALLTRAP" decode "$1.data" --buildid-dir "$out/debug" --dump calls >"$work/$1.dump" 2>"$work/said" ||
        bad "$1: decode --dump ends with $?" "$work/said" || return
}

# The recorder asks for CYC packets: test_decode.sh tells of their times.
compare() { # MODE NAME FILE
    python3 "$SOURCE/tests/golden/normalize_calls.py" --times-within 20000000 "$1" "$work/$2.perf" "$3" >"$work/differences" 2>&1 ||
        bad "$2: perf's calls and ours differ ($1)" "$work/differences"
}

rows() { # NAME SQL
    sqlite3 -readonly "$work/$1.db" "$2"
}

check_branches() { # NAME
    ! grep '^ instruction trace error' "$work/$1.perf" >"$work/errors" || bad "$1: perf cannot decode all of it" "$work/errors" || return
    compare gaps "$1" "$work/$1.dump" || return
    [ "$(rows "$1" "SELECT value FROM meta WHERE key = 'decode_errors'")" = 0 ] || bad "$1: decoding errors" || return
    echo "$1: $(wc -l <"$work/$1.perf") calls and returns, as perf has them"
}

check_same() { # NAME
    check_branches "$1" && compare rows "$1" "$work/$1.db"
}

# Everything was recorded.
check_whole() { # NAME
    check_same "$1" || return
    [ -z "$(rows "$1" "SELECT * FROM gaps")" ] || bad "$1: everything was recorded, yet there are gaps: $(rows "$1" "SELECT * FROM gaps")"
}

# Each of the threads made calls.
check_threads() { # NAME THREAD...
    local name=$1 thread
    shift
    for thread; do
        [ "$(rows "$name" "SELECT count(*) > 0 FROM threads WHERE name = '${thread:0:15}' AND calls > 0")" = 1 ] || bad "$name: no calls of a thread $thread" || return
    done
    echo "$name: calls of $# programs"
}

# The branches are perf's, and the thread made at least so many calls of the function.
check_calls() { # NAME FUNCTION TID LEAST
    check_branches "$1" || return
    [ "$(rows "$1" "SELECT count(*) >= $4 FROM calls WHERE function = '$2' AND tid = $3")" = 1 ] || bad "$1: not $4 calls of $2 by thread $3"
}

# vfs_read() ran without a BPF program, then with one: between the two the kernel's code was changed.
check_patched() { # NAME
    check_branches "$1" || return
    [ "$(rows "$1" "SELECT count(*) FROM gaps WHERE reason NOT IN ('overwritten', 'not attached')")" = 0 ] || bad "$1: gaps: $(rows "$1" "SELECT reason, detail FROM gaps")" || return
    rows "$1" "SELECT count(*), sum(start_ns < (SELECT min(start_ns) FROM calls WHERE function GLOB 'bpf_prog_*')),
        (SELECT count(*) FROM calls WHERE function GLOB 'bpf_prog_*') FROM calls WHERE function = 'vfs_read'" >"$work/patched"
    awk -F'|' '$2 < 3 || $3 < 3 {exit 1}' "$work/patched" || bad "$1: vfs_read() should have run before and with a BPF program: calls, before, of the program" "$work/patched" || return
    rows "$1" "SELECT module, function, count(*) FROM calls WHERE (module = '[sch_netem]' AND function = 'netem_enqueue') OR
        (module = '[vdso]' AND function GLOB '*clock_gettime') GROUP BY 1, 2" >"$work/elsewhere"
    [ "$(cut -d'|' -f1 "$work/elsewhere" | sort -u | wc -l)" = 2 ] || bad "$1: no calls in a module and in the vdso" "$work/elsewhere" || return
    echo "$1: $(tr '\n' ' ' <"$work/elsewhere")"
    echo "$1: calls of vfs_read, of them before the BPF program, calls of that: $(cat "$work/patched")"
}

# User and kernel code of several processes in rings of CPUs.
check_cpus() { # NAME
    compare cpus "$1" "$work/$1.dump" || return
    python3 "$SOURCE/tests/golden/normalize_calls.py" --times-within 20000000 rows "$work/$1.perf" "$work/$1.db" "$work/$1.dump" >"$work/differences" 2>&1 ||
        bad "$1: perf's calls and ours differ (rows)" "$work/differences" || return
    echo "$1: $(wc -l <"$work/$1.perf") calls and returns, as perf has them, CPU by CPU"
}

# So many threads that were born while armed have their calls.
check_born() { # NAME N
    [ "$(rows "$1" "SELECT count(*) FROM (SELECT tid FROM calls WHERE function = 'work' GROUP BY tid HAVING count(*) > 100)")" = "$2" ] ||
        bad "$1: threads that were born while armed are missing: $(rows "$1" "SELECT tid, calls FROM threads")"
}

# In the delayed-ACK stall of the forwarder are the send that was held back and the timer that ended the wait.
check_delack() { # NAME TID
    local wait function
    wait="(SELECT start_ns, end_ns FROM calls WHERE function = 'receive_both' AND tid = $2 AND duration_ns > 30000000 ORDER BY start_ns LIMIT 1)"
    [ "$(rows "$1" "SELECT count(*) FROM $wait")" = 1 ] || bad "$1: no call of receive_both that lasts" || return
    for function in tcp_write_xmit tcp_delack_timer; do
        rows "$1" "SELECT c.function, c.thread, c.tid, (c.start_ns - w.start_ns) / 1000000.0 || ' ms after the wait began' FROM calls c, $wait w
            WHERE c.function = '$function' AND c.kernel AND c.start_ns BETWEEN w.start_ns - 5000000 AND w.end_ns" >"$work/found"
        [ -s "$work/found" ] || bad "$1: no call of $function in the delayed-ACK stall" || return
        head -n 3 "$work/found"
    done
}

check_nest() { # NAME N [LEAST]
    python3 "$ptvm/check_nest.py" "$work/$1.perf" "${@:2}" || bad "$1: not nest's calls"
}

# The program has counted the calls of its functions (NAME.counted, lines "FUNCTION CALLS"): the database has just these, and saw all of
# them begin and end.
check_counted() { # NAME
    local functions
    functions=$(awk '{printf "%s\047%s\047", (NR > 1 ? "," : ""), $1}' "$1.counted")
    rows "$1" "SELECT function || ' ' || count(*) FROM calls WHERE function IN ($functions) AND flags & 3 = 0 GROUP BY function" | sort >"$work/counted"
    sort "$1.counted" | diff - "$work/counted" >"$work/differences" || bad "$1: not the calls that the program counted" "$work/differences" || return
    [ "$(rows "$1" "SELECT count(*) FROM calls WHERE function IN ($functions) AND flags & 3")" = 0 ] || bad "$1: calls that were not seen whole" || return
    [ -z "$(rows "$1" "SELECT * FROM gaps")" ] || bad "$1: everything was recorded, yet there are gaps: $(rows "$1" "SELECT * FROM gaps")" || return
    echo "$1: $(awk '{n += $2} END {print n}' "$1.counted") calls, counted by the program itself, are in the database"
}

# Each thread has told its calls (NAME.pinned, lines "TID FUNCTION CALLS"), which no other makes: the database has them so, of these threads.
check_pinned() { # NAME
    local functions
    functions=$(awk '{printf "%s\047%s\047", (NR > 1 ? "," : ""), $2}' "$1.pinned")
    rows "$1" "SELECT tid || ' ' || function || ' ' || count(*) FROM calls WHERE function IN ($functions) GROUP BY tid, function" | sort >"$work/pinned"
    sort "$1.pinned" | diff - "$work/pinned" >"$work/differences" || bad "$1: not the calls of the threads that made them" "$work/differences" || return
    [ -z "$(rows "$1" "SELECT * FROM gaps")" ] || bad "$1: everything was recorded, yet there are gaps: $(rows "$1" "SELECT * FROM gaps")" || return
    echo "$1: $(awk '{n += $3} END {print n}' "$1.pinned") calls are those of the threads that made them"
}

# All checks of one recording, in a folder of its own; how many, and how many failed, into its file `count`.
check_recording() { # FOLDER NAME
    local check arguments
    mkdir -p "$work/$1/$2" && work=$work/$1/$2 && cd "$out/$1" || return
    while read -r check arguments; do
        # shellcheck disable=SC2086
        list "$2" && "check_$check" "$2" $arguments
        n=$((n + 1))
    done < <(sed -n "s/^$2 //p" checks)
    echo "$n $failed" >"$work/count"
}

keep_vdso
recordings=0
for folder in */; do
    [ -e "$folder/checks" ] || continue
    for name in $(cut -d' ' -f1 "$folder/checks" | sort -u); do
        while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
        check_recording "${folder%/}" "$name" &
        recordings=$((recordings + 1))
    done
done
wait
read -r told n failed < <(cat "$work"/*/*/count | awk '{n += $1; failed += $2} END {print NR, n + 0, failed + 0}')
[ "$told" = $recordings ] || bad "only $told of $recordings recordings were checked to the end"
echo "$n checks outside, $failed failed"
[ "$n" -gt 0 ] && [ "$failed" = 0 ]
