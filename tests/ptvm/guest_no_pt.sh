# guest_no_pt.sh STALLTRAP: a guest without Intel PT (run.sh --cpu ,intel-pt=off): doctor and arm name the cause and what to do, and
# `auto` records all the same.
stalltrap=$1
cd /tmp || exit
fail() { # MESSAGE
    echo "FAILED: $1"
    cat out err
    exit 1
}
says() { # WHO PATTERN...
    local who=$1 pattern
    shift
    for pattern; do grep -qE -e "$pattern" out err || fail "$who does not say '$pattern'"; done
}

[ ! -e /sys/bus/event_source/devices/intel_pt ] || fail "the machine has Intel PT: this shows nothing"
"$stalltrap" doctor >out 2>err || fail "doctor ends with $?"
cat out
says doctor '^no +Intel PT +.*guest without Intel PT' 'record on the host.*pt_mode=1' '^yes +sample ' '^no +intel-pt .*no intel_pt PMU'
sleep 100 &
status=0
"$stalltrap" arm --source intel-pt -p $! --timeout 1s -o no >out 2>err || status=$?
cat err
[ $status = 3 ] || fail "arm --source intel-pt: exit $status, not 3"
says arm 'no intel_pt PMU' 'guest without Intel PT' 'record on the host.*pt_mode=1' 'doctor'
"$stalltrap" arm -p $! --timeout 1s -o no >out 2>err || true # nothing fires
cat err
says 'arm (auto)' 'armed: sample'
kill $!
