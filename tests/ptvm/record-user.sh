# record-user.sh BIN [COMMAND...]: runs inside the machine, from fixtures.sh. Records known programs with the intel_pt driver and perf, and
# leaves in $PTVM_OUT for each recording NAME: NAME.data; of some in inside/NAME.cr the calls and returns as perf decodes them here; the
# guest's vdso; and for record-list.sh in the file listings-record-user what is to be listed. BIN holds the programs nest and threads; each COMMAND is recorded under its program's name.
. ./record-lib.sh
set -u
bin=$1
shift
pt=intel_pt
trap '[ -z "${nest_pid:-}" ] || kill "$nest_pid"' EXIT

known() { # NAME N PERF-OPTION...: records `nest N`, whose listing has to be nest's true sequence
    local name=$1 n=$2
    shift 2
    rec "$name" "$@" -- "$bin/nest" "$n"
    later "$name" cr cr nest "$n"
    keep "$PTVM_OUT" "$name" data
}

# Lets nest run on for 0.3 s of its own time.
let_run() {
    local -a stat
    local from=''
    while :; do
        read -ra stat <"/proc/$nest_pid/stat"
        : "${from:=${stat[13]}}"
        [ "${stat[13]}" -lt $((from + 30)) ] || return 0
        sleep 0.1
    done
}

# attached NAME PERF-OPTION...: a nest that runs on, and `perf record` on it; returns when that records.
attached() {
    local name=$1
    shift
    "$bin/nest" 2000000000 &
    nest_pid=$!
    rm -f "$work/ctl" "$work/ack"
    mkfifo "$work/ctl" "$work/ack"
    perf --buildid-dir "$bdir" record -q -o "$work/$name.data" --control "fifo:$work/ctl,$work/ack" -p "$nest_pid" "$@" >"$work/perf.out" 2>&1 &
    perf_pid=$!
    exec 7>"$work/ctl" 8<>"$work/ack"
    echo ping >&7
    read -r -t 60 -u 8 _ || fail "$name: perf record does not answer"
    let_run
}

detached() {
    kill -INT "$perf_pid"
    wait "$perf_pid" || true
    exec 7>&- 8<&-
    kill "$nest_pid"
    nest_pid=''
}

# A ring that has wrapped, copied out twice by signal while the program runs on.
record_snapshot() {
    attached nest-snapshot --snapshot -m,64K -e $pt//u
    kill -USR2 "$perf_pid"
    let_run
    kill -USR2 "$perf_pid"
    let_run
    detached
    later nest-snapshot cr cr some
    keep "$PTVM_OUT" nest-snapshot data
}

# A file a signal, each with the side-band of what runs already; the last has no AUX data, its ring was not copied out: outside perf 6.1
# dies of some such files.
record_switch_output() {
    local part n=0
    attached part --snapshot --switch-output -m,64K -e $pt//u
    kill -USR2 "$perf_pid"
    let_run
    detached
    for part in "$work"/part.data.*; do
        n=$((n + 1))
        mv "$part" "$work/nest-switch-$n.data"
        keep "$PTVM_OUT" nest-switch-$n data
    done
    [ $n -gt 1 ] || fail "perf record --switch-output left $n files"
    later nest-switch-1 cr cr some
    for ((part = 2; part <= n; part++)); do
        list nest-switch-$part cr cr
        keep "$PTVM_OUT" nest-switch-$part cr
    done
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
later threads-40 cr cr some
keep "$PTVM_OUT" threads-40 data
record_snapshot
record_switch_output

for name in nest-50 nest-300-noretcomp threads-40; do
    later $name b b some
done
for name in nest-50 nest-300-kernel threads-40; do
    inside $name
done

for command; do
    name=$(basename "${command%% *}")
    # The words of a command are meant to be split.
    # shellcheck disable=SC2086
    rec "$name" -m,4M -e $pt//u -- $command
    later "$name" cr cr some
    keep "$PTVM_OUT" "$name" data
done

keep_vdso "$PTVM_OUT"
uname -r >"$PTVM_OUT/uname"
