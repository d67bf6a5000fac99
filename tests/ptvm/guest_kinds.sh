# guest_kinds.sh SOURCE BUILD [CELL...]: each source, and each kind of trigger by one stall of its own that tests/cli/kinds.sh makes and
# judges. A line a cell to $PTVM_OUT/cells, with tabs: NAME, "works", "refused" or "failed", and how: by which hook, or in which words.
# A refusal ends with exit 3, and doctor has said the same before.
build=$2
export SOURCE=$1 STALLTRAP=$2/stalltrap
shift 2
set +e
cells=$PTVM_OUT/cells kinds=$build/tests/workloads/kinds
work=$(mktemp -d) && cd "$work" || exit 1
# A build folder that can be written: scripts keep things there.
export BUILD=$work/build HOME=$work
mkdir -p "$BUILD/tests"
ln -s "$build/tests/workloads" "$build/tests/user.bpf.o" "$BUILD/tests/"
cp "$build/tests/user.bpf.o" .
uname -r >"$PTVM_OUT/kernel"
failed=0

tell() { # NAME RESULT HOW
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$cells"
    printf '%-16s %-8s %s\n' "$1" "$2" "$3"
    [ "$2" != failed ] || failed=1
}

echo "tracepoint:syscalls:sys_exit_clock_nanosleep /comm == \"kinds\"/ { printf(\"stalltrap tid=%d slept\\n\", tid); }" >slept.bt
export KINDS_MORE="bpftrace sleep bpftrace:$work/slept.bt true
irq compute irq>1us attr('irq') IS NOT NULL"

"$STALLTRAP" doctor --json >doctor.json 2>doctor.err || { cat doctor.err; exit 1; }
finding() { # KEY: its verdict, then its words and its advice as arm would print them
    python3 - "$1" <<'PYTHON'
import json, sys
for f in json.load(open("doctor.json"))["findings"]:
    if f["key"] == sys.argv[1]:
        print(f["verdict"])
        print(f["detail"] + ("\n  " + f["advice"] if f["advice"] else ""))
PYTHON
}
finding triggers | tail -n +2 >doctor.words
[ "$(finding triggers | head -n 1)" = no ] || : >doctor.words

# What arm says of a trigger that the kinds' script could not arm.
why_not() { # NAME
    local mode trigger status
    read -r _ mode trigger _ < <(bash "$SOURCE/tests/cli/kinds.sh" rows | grep "^$1 ")
    "$kinds" "$mode" >/dev/null 2>&1 &
    "$STALLTRAP" arm --source sample -p $! --on "${trigger//WORKLOAD/$kinds}" --no-decode --timeout 100ms >arm.out 2>arm.err
    status=$?
    kill $!
    sed -n '/^stalltrap arm: /,$p' arm.err | sed '1s/^stalltrap arm: //' >arm.words
    if [ $status != 3 ]; then
        tail -n 30 kinds.out 2>/dev/null
        tell "$1" failed "exit $status: $(tr '\n' ' ' <arm.words)"
    elif ! cmp -s arm.words doctor.words; then
        diff arm.words doctor.words
        tell "$1" failed "doctor did not say: $(tr '\n' ' ' <arm.words)"
    else
        tell "$1" refused "$(head -n 1 arm.words)"
    fi
}

kind() { # NAME
    local try how tries=3
    case $1 in bpf | bpftrace) ;; *) [ ! -s doctor.words ] || tries=0 ;; esac
    for ((try = 0; try < tries; try++)); do
        if timeout 300 bash "$SOURCE/tests/cli/kinds.sh" "$1" >kinds.out 2>&1; then
            how=$(sed -n 's/^armed: .*; waiting for .* (by \([a-z ]*\)).*/\1/p' kinds.out | tail -n 1)
            tell "$1" works "$how"
            return
        fi
    done
    why_not "$1"
}

# Interrupts of the disk, on the CPU that the workload has too.
interrupted() {
    local line reader
    for line in /proc/irq/*/smp_affinity; do echo 1 >"$line" 2>/dev/null; done
    while :; do find /run/host/usr/lib -type f -size -64k -exec cat {} + >/dev/null 2>&1; done &
    reader=$!
    (taskset -cp 0 $BASHPID >/dev/null && kind irq)
    kill $reader
}

# A source records a thread that computes until Ctrl-C; its calls are there.
recorded() { # NAME HOW-PATTERN ARM-OPTION...
    local name=$1 pattern=$2 target arm calls status before
    shift 2
    "$kinds" compute >noted &
    target=$!
    rm -rf s.*
    "$STALLTRAP" arm "$@" -p $target -o s >arm.out 2>arm.err &
    arm=$!
    for ((i = 0; i < 1200; i++)); do
        grep -q '^armed' arm.err || [ ! -e /proc/$arm ] && break
        sleep 0.1
    done
    before=$(wc -l <noted)
    for ((i = 0; i < 300; i++)); do # it computes, and comes by at some calls
        [ "$(wc -l <noted)" -lt $((before + 2)) ] || break
        sleep 0.2
    done
    kill -INT $arm 2>/dev/null
    wait $arm
    status=$?
    kill $target
    calls=$("$STALLTRAP" query s.1.db "SELECT count(*) FROM calls WHERE module = 'kinds' OR module LIKE '%vdso%' OR module LIKE 'libc%'" --format csv 2>/dev/null | tail -n 1)
    if [ $status = 0 ] && [ "${calls:-0}" -gt 0 ]; then
        tell "$name" works "$(grep -oE "$pattern" arm.err | head -n 1)"
    else
        cat arm.err
        tell "$name" failed "exit $status, ${calls:-no} calls"
    fi
}

rings='[0-9.]+ [KM]iB a (CPU|thread)'
one() { # CELL
    case $1 in
    sample) recorded sample "$rings" --source sample ;;
    sample.threads) recorded sample.threads "$rings" --source sample --rings thread ;;
    intel-pt) recorded intel-pt 'user(\+kernel)?' --source intel-pt --ring 256K ;;
    step) recorded step 'user(\+kernel)?' --source step --ring 256K ;;
    irq) if [ -s doctor.words ]; then why_not irq; else interrupted; fi ;;
    *) kind "$1" ;;
    esac
}
# Unsent data take longer to go, once they are read, than their stall lasts in an emulated computer: ptvm_triggers has them.
[ $# -gt 0 ] || set -- sample sample.threads intel-pt step $(bash "$SOURCE/tests/cli/kinds.sh" rows | cut -d' ' -f1 | grep -vx socket.unsent)
for cell; do one "$cell"; done
grep -q 'irq.*failed' "$cells" && failed=1 # it was told in a shell of its own
exit $failed
