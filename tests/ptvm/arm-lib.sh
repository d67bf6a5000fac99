# arm-lib.sh SOURCE BUILD: sourced inside the machine by the tests of our own recorder; the helpers of tests/cli/lib.sh, and what is
# left for outside: the comparison of our calls with perf's, by check_arm.sh, where that is twenty times as fast. The work folder
# lies in the guest's own memory.
# shellcheck shell=bash
export SOURCE=$1 BUILD=$2 STALLTRAP=$2/stalltrap
run_folder=$PWD
nest=$BUILD/tests/ptvm/nest threads=$BUILD/tests/ptvm/threads quiet=$BUILD/tests/ptvm/quiet slow=$BUILD/tests/ptvm/slow # their paths outside
. "$SOURCE/tests/cli/lib.sh"
set +e # the helpers look at every status themselves
kept=$PTVM_OUT/${ARM_TEST:-test}

# Records the command `nest N` into NAME.1.data and NAME.1.db.
arm_nest() { # N NAME ARM-OPTION...
    local n=$1 name=$2
    shift 2
    "$STALLTRAP" arm --source intel-pt -o "$name" "$@" -- "$nest" "$n" >arm.out 2>arm.err
    status=$?
    cat arm.err
    [ $status -eq 0 ] || fail "$name: arm ends with $status" arm.out arm.err
}

# What `doctor` says, as lines "KEY VERDICT DETAIL | ADVICE" in doctor.out.
ask_doctor() { # [COMMAND...]
    ("$@" "$STALLTRAP" doctor --json) >doctor.json 2>doctor.err || fail "doctor ends with $?" doctor.err
    python3 -c 'import json, sys
for f in json.load(sys.stdin)["findings"]:
    print(f["key"], f["verdict"], f["detail"].replace("\n", " "), "|", (f["advice"] or "").replace("\n", " "))' <doctor.json >doctor.out || fail "doctor --json" doctor.json
}
doctor_says() { # PATTERN...
    local pattern
    for pattern; do grep -qE -e "$pattern" doctor.out || fail "doctor does not say '$pattern'" doctor.out; done
}

# One line for check_arm.sh, which finds FILE (a snapshot, or a recording of perf's) and its database beside it.
outside() { # FILE CHECK [ARGUMENT...]
    local file=$1 name beside
    name=$(basename "$file" .data)
    shift
    mkdir -p "$kept"
    if [ ! -e "$kept/$name.data" ]; then
        cp -r "$file" "$kept/$name.data" || fail "no $file"
        for beside in db counted pinned; do
            [ ! -e "${file%.data}.$beside" ] || cp "${file%.data}.$beside" "$kept/$name.$beside"
        done
        [ -e "$kept/../vdso.so" ] || copy_vdso "$kept/../vdso.so"
    fi
    echo "$name $*" >>"$kept/checks"
}

copy_vdso() { # FILE
    python3 - "$1" <<'PYTHON' || fail "no vdso"
import sys
start, end = next([int(a, 16) for a in line.split()[0].split("-")] for line in open("/proc/self/maps") if "[vdso]" in line)
with open("/proc/self/mem", "rb") as memory, open(sys.argv[1], "wb") as file:
    memory.seek(start)
    file.write(memory.read(end - start))
PYTHON
}

# perf's calls of NAME.1.data and ours are the same, branch by branch and row by row, and neither has an error.
same_calls() { # NAME
    outside "$1.1.data" same
}

# The same of rings that wrapped: the rows are not compared, for they have calls that nobody saw.
same_branches() { # NAME
    outside "$1.1.data" branches
}

# perf's listing of NAME.1.data has the calls of `nest N`, or with LEAST at least so many of the last of them.
nest_calls() { # NAME N [LEAST]
    outside "$1.1.data" nest "${@:2}"
}

gaps_of() { # NAME
    sql "$1.1.db" "SELECT reason, detail, start_ns, end_ns FROM gaps"
}

no_gaps() { # NAME
    [ -z "$(gaps_of "$1")" ] || fail "$1: everything was recorded, yet there are gaps: $(gaps_of "$1")"
}
