# arm-lib.sh SOURCE BUILD: sourced inside the machine by the tests of our own recorder; the helpers of tests/cli/lib.sh, and the
# comparison of our calls with perf's. The work folder lies in the guest's own memory.
# shellcheck shell=bash
export SOURCE=$1 BUILD=$2 STALLTRAP=$2/stalltrap
run_folder=$PWD
nest=$run_folder/nest
. "$SOURCE/tests/cli/lib.sh"
set +e # the helpers look at every status themselves

# Records the command `nest N` into NAME.1.data and NAME.1.db.
arm_nest() { # N NAME ARM-OPTION...
    local n=$1 name=$2
    shift 2
    "$STALLTRAP" arm --source intel-pt -o "$name" "$@" -- "$nest" "$n" >arm.out 2>arm.err
    status=$?
    cat arm.err
    [ $status -eq 0 ] || fail "$name: arm ends with $status" arm.out arm.err
}

# perf's calls of NAME.1.data and ours are the same, branch by branch and row by row, and neither has an error. After a ring that
# wrapped the rows are not compared: they have calls that nobody saw.
same_calls() { # NAME [wrapped]
    local name=$1 snapshot=$1.1.data
    perf_calls "$snapshot"
    [ -s perf.calls ] || fail "$name: perf lists nothing"
    "$STALLTRAP" decode "$snapshot" --dump calls >dump.calls 2>dump.err || fail "$name: decode --dump ends with $?" dump.err
    cp "$name.1.db" rows.db
    [ ! -d "$snapshot/kcore_dir" ] || python3 "$run_folder/kernel_names.py" "$snapshot/kcore_dir/kallsyms" perf.calls dump.calls rows.db || fail "kernel_names.py"
    # perf does not say that the trace starts where what is older was overwritten.
    [ -z "${2:-}" ] || { awk '/ gap overwritten: / {gap = 1; next} !(gap && / tr-start/); {gap = 0}' dump.calls >dump.cut && mv dump.cut dump.calls; }
    compare_calls dump dump.calls || fail "$name: perf's calls and decode --dump's differ" differences
    [ -n "${2:-}" ] || compare_calls rows rows.db || fail "$name: perf's calls and the database's differ" differences
    [ "$(sql "$name.1.db" "SELECT value FROM meta WHERE key = 'decode_errors'")" = 0 ] || fail "$name: decoding errors"
    echo "$name: $(wc -l <perf.calls) calls and returns, as perf has them"
}

compare_calls() { # KIND FILE
    python3 "$SOURCE/tests/golden/normalize_calls.py" "$1" perf.calls "$2" >differences 2>&1
}

# What same_calls left in perf.calls are the calls of `nest N`, or with LEAST at least so many of the last of them.
nest_calls() { # NAME N [LEAST]
    python3 "$run_folder/check_nest.py" perf.calls "${@:2}" || fail "$1: not nest's calls"
}

gaps_of() { # NAME
    sql "$1.1.db" "SELECT reason, detail, start_ns, end_ns FROM gaps"
}

no_gaps() { # NAME
    [ -z "$(gaps_of "$1")" ] || fail "$1: everything was recorded, yet there are gaps: $(gaps_of "$1")"
}
