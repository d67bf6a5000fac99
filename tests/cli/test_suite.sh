#!/bin/bash
# What `make test` and `make test-all` say of tests that fail, pass at another try, leave something running, or cannot run here; and that they
# fail when one failed each time.
set -u
. "$SOURCE/tests/cli/lib.sh"

# test_of NAME LABEL SCRIPT: one more test for ctest
test_of() {
    {
        echo "add_test($1 bash -c [[$3]])"
        echo "set_tests_properties($1 PROPERTIES LABELS $2 SKIP_RETURN_CODE 77)"
    } >>CTestTestfile.cmake
}

suite() { # STATUS [OPTION...]
    python3 - "$SOURCE/tests" "${@:2}" >out 2>err <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import suite
suite.QUIET_FOR, suite.PATIENCE = 0, 0
sys.argv[1:] = ["--build", ".", "--jobs", "2", *sys.argv[2:]]
sys.exit(suite.main())
END
    local status=$?
    [ $status -eq "$1" ] || fail "suite.py ends with $status, expected $1" out err
}

says() { # PATTERN...: each matches a line of what it printed behind ctest's own
    local line
    for line; do
        sed -n '/^---- /,$p' out | grep -qxE -- "$line" || fail "no line '$line'" out err
    done
}

# What is tried again waits for a quiet machine, and not for ever.
python3 - "$SOURCE/tests" >out 2>err <<'END' || fail "waiting for a quiet machine" out err
import sys
sys.path.insert(0, sys.argv[1])
import suite
seen = []
def machine(*shares):
    """Of so many looks at it, others had these shares of the processors."""
    used = whole = 0
    def busy():
        nonlocal used, whole
        seen.append(1)
        if len(seen) % 2 == 0:
            used, whole = used + 100 * shares[min(len(seen) // 2, len(shares)) - 1], whole + 100
        return used, whole
    return busy
suite.QUIET_FOR = 0.01
suite.busy = machine(0.9, 0.5, 0.1)
suite.wait_until_quiet()
assert len(seen) == 6, seen
seen.clear()
suite.PATIENCE, suite.busy = 0.2, machine(0.9)
suite.wait_until_quiet()
assert len(seen) >= 2, seen
END
[ "$(cat out)" = "the machine does not get quiet: tried again all the same after 0.2 s" ] || fail "what it says of a busy machine" out

test_of good unit 'echo all well'
test_of lacks unit 'echo "skipped: there is no such hardware"; exit 77'
test_of partly unit 'printf "%s\n" "[ RUN      ] one" "skipped: no fentry" "[  SKIPPED ] one" "[  PASSED  ] 3 test(s)." "[  SKIPPED ] 1 test(s), listed below:" "[  SKIPPED ] one"'
suite 0
says 'SKIP  lacks: there is no such hardware' 'SKIP  partly: one: no fentry' '100% tests passed, 0 tests failed out of 3 \(1 skipped, 0 flaky\)'

test_of wavers timing 'if [ -e there ]; then echo now it is; else touch there; echo not yet; exit 3; fi'
suite 0
says '---- wavers, try 1: failed after [0-9]+ s' '---- wavers, try 2: it passed' 'not yet' 'now it is' \
    '100% tests passed, 0 tests failed out of 4 \(1 skipped, 1 flaky: wavers\)'
suite 0 --table
says '100% tests passed, 0 tests failed out of 4 \(1 skipped, 0 flaky\)' '---- each test' 'wavers +passed +[0-9.]+ s' \
    'lacks +skipped +[0-9.]+ s  there is no such hardware'
rm there
suite 1 --tries 1
says '---- wavers, try 1: failed after [0-9]+ s' '75% tests passed, 1 tests failed out of 4 \(1 skipped, 0 flaky\)'
rm there
suite 0 --table
says 'wavers +flaky +[0-9.]+ s  not yet'

test_of doubts timing 'echo "inconclusive: the machine was busy"; exit 77'
suite 0 --table
says 'doubts +inconclusive +[0-9.]+ s  the machine was busy'

# Only the labels timing, net and field are tried again: elsewhere a fault would hide.
test_of finds fuzz 'if [ -e found ]; then echo nothing; else touch found; echo a finding; exit 1; fi'
suite 1
says '83% tests passed, 1 tests failed out of 6 \(2 skipped, 0 flaky\)' 'The following tests FAILED:' $'\tfinds: after [0-9]+ s'
suite 0

test_of reports timing 'if [ -e it ]; then echo nothing; else touch it; echo "==1==ERROR: AddressSanitizer: heap-use-after-free"; exit 1; fi'
suite 1
says $'\treports: after [0-9]+ s'
suite 0

# A failed assertion leaves what the test held: the leak is no finding of its own.
test_of jumps timing 'if [ -e left ]; then echo well; else touch left; echo "[  FAILED  ] one"; echo "==1==ERROR: LeakSanitizer: leaks"; exit 1; fi'
suite 0
says '---- jumps, try 1: failed after [0-9]+ s' '---- jumps, try 2: it passed'

test_of bad timing 'echo broken; exit 1'
suite 1
says '---- once more: bad' '---- bad, try 3: failed after [0-9]+ s' $'\tbad: after [0-9]+ s'

test_of leaves cli 'setsid sleep 1234 >out.leaves 2>&1 & echo $! >pid; until grep -qs "^sleep" "/proc/$!/cmdline"; do sleep 0.1; done'
suite 1
grep -qxE "left running, and ended: $(cat pid) 'sleep 1234'" out || fail "what a test left running is not named" out
[ ! -d "/proc/$(cat pid)" ] || fail "what a test left running goes on" out
