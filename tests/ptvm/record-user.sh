# record-user.sh BIN [COMMAND...]: runs inside the machine, from fixtures.sh. Records known programs with the intel_pt driver and perf, and
# leaves in $PTVM_OUT for each recording NAME: NAME.data, NAME.cr (calls and returns as perf decodes them here), NAME.b (all branches,
# small ones only); and the guest's vdso. BIN holds the programs nest and threads; each COMMAND is recorded under its program's name.
. ./record-lib.sh
set -u
bin=$1
shift
pt=intel_pt
trap '[ -z "${nest_pid:-}" ] || kill "$nest_pid"' EXIT

known() { # NAME N PERF-OPTION...: records `nest N`, whose listing must be nest's true sequence
    local name=$1 n=$2
    shift 2
    rec "$name" "$@" -- "$bin/nest" "$n"
    list "$name" cr cr
    ./check_nest.py "$work/$name.cr" "$n"
    keep "$PTVM_OUT" "$name" data cr
}

# A ring that has wrapped, copied out twice by signal while the program runs on.
record_snapshot() {
    local perf_pid
    "$bin/nest" 300000000 &
    nest_pid=$!
    perf --buildid-dir "$bdir" record -q -o "$work/nest-snapshot.data" --snapshot -m,64K -e $pt//u -p "$nest_pid" &
    perf_pid=$!
    sleep 1.5
    kill -USR2 $perf_pid
    sleep 0.7
    kill -USR2 $perf_pid
    sleep 0.7
    kill -INT $perf_pid
    wait $perf_pid || true
    kill "$nest_pid"
    nest_pid=''
    list nest-snapshot cr cr
    keep "$PTVM_OUT" nest-snapshot data cr
}

# A file a signal: each part begins with the side-band of what runs already.
record_switch_output() {
    local perf_pid part n=0
    mkdir -p "$work/parts"
    "$bin/nest" 300000000 &
    nest_pid=$!
    perf --buildid-dir "$bdir" record -q -o "$work/parts/part.data" --switch-output --snapshot -m,64K -e $pt//u -p "$nest_pid" 2>/dev/null >&2 &
    perf_pid=$!
    sleep 1.5
    kill -USR2 $perf_pid
    sleep 0.7
    kill -INT $perf_pid
    wait $perf_pid || true
    kill "$nest_pid"
    nest_pid=''
    for part in "$work"/parts/part.data.*; do
        n=$((n + 1))
        mv "$part" "$work/nest-switch-$n.data"
        list nest-switch-$n cr cr
        keep "$PTVM_OUT" nest-switch-$n data cr
    done
    [ $n -gt 0 ] || fail "perf record --switch-output left no file"
}

known nest-50 50 -m,4M -e $pt//u
known nest-300 300 -m,4M -e $pt//u
known nest-3000 3000 -m,4M -e $pt//u
known nest-300-noretcomp 300 -m,4M -e $pt/noretcomp=1/u
known nest-300-cyc 300 -m,4M -e $pt/cyc=1,cyc_thresh=0/u
known nest-300-psb0 300 -m,4M -e $pt/psb_period=0/u
known nest-300-mtc9 300 -m,4M -e $pt/mtc_period=9/u
known nest-300-per-thread 300 --per-thread -T -m,4M -e $pt//u
known nest-300-per-thread-untimed 300 --per-thread -m,4M -e $pt//u
known nest-snapshot-exit 3000 --snapshot=e -m,64K -e $pt//u
known nest-300-kernel 300 --kcore -m,4M -e $pt/cyc=1/
known nest-50-all-cyc 50 --kcore -a -m,16M -e $pt/cyc=1/

rec threads-40 -m,4M -e $pt//u -- "$bin/threads" 40 3
list threads-40 cr cr
keep "$PTVM_OUT" threads-40 data cr
record_snapshot
record_switch_output

for name in nest-50 nest-300-noretcomp threads-40; do
    list $name b b
    keep "$PTVM_OUT" $name b
done

for command; do
    name=$(basename "${command%% *}")
    # The words of a command are meant to be split.
    # shellcheck disable=SC2086
    rec "$name" -m,4M -e $pt//u -- $command
    list "$name" cr cr
    keep "$PTVM_OUT" "$name" data cr
    echo "$name: $(wc -l <"$work/$name.cr") calls and returns"
done

keep_vdso "$PTVM_OUT"
uname -r >"$PTVM_OUT/uname"
