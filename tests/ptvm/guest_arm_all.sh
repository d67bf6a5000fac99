# guest_arm_all.sh SOURCE BUILD NAME[:ARG]...: runs guest_arm_NAME.sh SOURCE BUILD ARG of each, in one boot of the machine.
source=$1 build=$2
shift 2
failed=
for test; do
    begin=$SECONDS
    if ARM_TEST=${test//:/-} bash "./guest_arm_${test%%:*}.sh" "$source" "$build" $([ "$test" = "${test#*:}" ] || echo "${test#*:}"); then
        echo "== $test: passed, $((SECONDS - begin)) s"
    else
        echo "== $test: FAILED, $((SECONDS - begin)) s"
        failed="$failed $test"
    fi
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
