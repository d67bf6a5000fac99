# guest_arm_user.sh SOURCE BUILD: `arm --source intel-pt --no-kernel`: commands whose calls are known, from their first to their last
# instruction, in rings of CPUs and of threads. Files: arm-lib.sh, check_nest.py, nest.
. ./arm-lib.sh "$@"
nest=$run_folder/nest

"$STALLTRAP" doctor >doctor.out || fail "doctor" doctor.out
grep -q '^yes *intel-pt ' doctor.out || fail "doctor does not say that intel-pt can record" doctor.out

whole() { # NAME ARM-OPTION...: all of `nest 300`
    local name=$1
    shift
    "$STALLTRAP" arm --source intel-pt --no-kernel -o "$name" "$@" -- "$nest" 300 >arm.out 2>arm.err
    status=$?
    cat arm.err
    [ $status -eq 0 ] || fail "$name: arm ends with $status" arm.out arm.err
    same_calls "$name"
    python3 "$run_folder/check_nest.py" perf.calls 300 || fail "$name: not nest's calls"
    [ -z "$(gaps_of "$name")" ] || fail "$name: everything was recorded, yet there are gaps: $(gaps_of "$name")"
    echo "$name: $(wc -l <perf.calls) lines"
}

whole cpu
whole thread --rings thread
