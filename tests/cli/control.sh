# A control beside what measures time. Sourced by lib.sh and arm_lib.sh: BUILD is in the environment, and who is in `started` is ended with the test.
# shellcheck shell=bash

# How late the machine itself is (tests/control): runs from here on.
start_control() {
    coproc CONTROL { exec "$BUILD/tests/control" 2>/dev/null; }
    started+=("$CONTROL_PID")
    read -r -t 60 _ <&"${CONTROL[0]}"
}

# By how many ns it was off since the last time, or the start.
control_off() {
    local off=0
    echo >&"${CONTROL[1]}" && read -r -t 60 off <&"${CONTROL[0]}"
    echo "$off"
}
