# guest_record.sh: the machine's own test: the kernel's intel_pt driver and perf record programs whose calls are known, and perf decodes
# exactly these, without an error. Files: record-lib.sh, check_nest.py, nest.
. ./record-lib.sh
set -u

known() { # NAME PERF-OPTION...
    local name=$1
    shift
    rec "$name" "$@" -- ./nest 300
    list "$name" cr cr
    ./check_nest.py "$work/$name.cr" 300 || fail "$name: not the calls that nest makes"
}

known default -m,4M -e intel_pt//u
known noretcomp -m,4M -e intel_pt/noretcomp=1/u
known cyc -m,4M -e intel_pt/cyc=1,cyc_thresh=0/u
known per-thread --per-thread -T -m,4M -e intel_pt//u
known all --kcore -a -m,16M -e intel_pt//

# The check itself: a listing that lacks one call, and one of another length, are not taken for nest's.
line=$(grep -n 'call .*=> .* rec+0x0' "$work/default.cr" | sed -n '100s/:.*//p')
sed "${line}d" "$work/default.cr" >"$work/damaged.cr"
! ./check_nest.py "$work/damaged.cr" 300 2>/dev/null || fail "check_nest.py takes a listing that lacks line $line"
! ./check_nest.py "$work/default.cr" 299 2>/dev/null || fail "check_nest.py takes 300 rounds for 299"
