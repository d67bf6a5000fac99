# arm-lib.sh SOURCE BUILD: sourced inside the machine by the tests of our own recorder; the helpers of tests/cli/lib.sh, and the
# comparison of our calls with perf's. The work folder lies in the guest's own memory.
# shellcheck shell=bash
export SOURCE=$1 BUILD=$2 STALLTRAP=$2/stalltrap
run_folder=$PWD
ptvm_programs=$BUILD/tests/ptvm
. "$SOURCE/tests/cli/lib.sh"
set +e # the helpers look at every status themselves

# Snapshot NAME (NAME.1.data): perf's calls and ours are the same, branch by branch and row by row, and neither has an error.
same_calls() { # NAME
    perf_calls "$1.1.data"
    "$STALLTRAP" decode "$1.1.data" --dump calls >dump.calls 2>dump.err || fail "$1: decode --dump ends with $?" dump.err
    python3 "$SOURCE/tests/golden/normalize_calls.py" dump perf.calls dump.calls >differences || fail "$1: perf's calls and decode --dump's differ" differences
    python3 "$SOURCE/tests/golden/normalize_calls.py" rows perf.calls "$1.1.db" >differences || fail "$1: perf's calls and the database's differ" differences
    [ "$(sql "$1.1.db" "SELECT value FROM meta WHERE key = 'decode_errors'")" = 0 ] || fail "$1: decoding errors"
    [ -s perf.calls ] || fail "$1: perf lists nothing"
}

gaps_of() { # NAME
    sql "$1.1.db" "SELECT reason, detail, start_ns, end_ns FROM gaps"
}
