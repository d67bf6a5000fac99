# guest_record.sh NEST: the kernel's intel_pt driver and perf record a program whose calls are known. perf lists them outside, where it is
# twenty times as fast (test_record.sh); in here too, of one. File: record-lib.sh.
. ./record-lib.sh
set -u
nest=$1

known() { # NAME PERF-OPTION...
    local name=$1
    shift
    rec "$name" "$@" -- "$nest" 300
    later "$name" cr cr nest 300
    keep "$PTVM_OUT" "$name" data
}

known default -m,4M -e intel_pt//u
known noretcomp -m,4M -e intel_pt/noretcomp=1/u
known cyc -m,4M -e intel_pt/cyc=1,cyc_thresh=0/u
known per-thread --per-thread -T -m,4M -e intel_pt//u
known all --kcore -a -m,16M -e intel_pt//
inside default
keep_vdso "$PTVM_OUT"
