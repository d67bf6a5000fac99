#!/bin/bash
# Records a command with the step source from its first to its last instruction. The calls must be those of perf on the same
# snapshot, in `decode --dump` and in the database; a workload's tree must be its known tree.
# usage: calls.sh workload NAME EXIT-STATUS [FILE-OF-ITS-OWN...]
#        calls.sh command COMMAND...
set -u
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/golden/known_tree.sh"
kind=$1
shift
name= own=()
if [ "$kind" = workload ]; then
    name=$1 expected=$2
    shift 2
    own=("$name" "$@")
    set -- "$programs/$name"
else
    expected=0
fi

# Calls that no recording sees, as "MODULE FUNCTION": a child has its parent's from before fork(), a thread of clone() and a coroutine begin in a
# function that nothing called.
inherited='libc\.so\.6 (_Fork|__libc_fork|fork|__vfork|vfork)'
declare -A unseen_calls=(
    [fork_exec]="$inherited|fork_exec start_(exec|plain)_child" [vfork_exec]="$inherited|vfork_exec start_child" [threads]='libc\.so\.6 (__)?clone3?'
    [coroutine]='libc\.so\.6 __start_context|coroutine (first_(entry|step)|second_(entry|deep)|give_back)'
    [fibers]='fibers (fibers::(take|run_consumer|run_endless|wait_for_ever)|boost::context::.*|std::_*invoke(_impl)?<.*)')

("$@" >plain.out; exit $?) 2>plain.err
plain=$?
[ $plain -eq "$expected" ] || fail "$* without us ends with $plain" plain.err
env -i PATH="$PATH" LC_ALL=C "$STALLTRAP" arm --source step --ring 16M -o x -- "$@" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
tail -n 1 arm.out | grep -q '^wrote x\.1\.data, x\.1\.db (' || fail "no 'wrote' line" arm.out arm.err
head -n -1 arm.out | diff -u plain.out - || fail "stepped, the program prints something else"

"$STALLTRAP" decode x.1.data --dump calls >dump.calls 2>dump.err || fail "decode --dump ends with $?" dump.err
perf_calls x.1.data
python3 "$SOURCE/tests/golden/normalize_calls.py" dump perf.calls dump.calls || fail "perf and decode --dump calls differ"
# Boost.Context comes back from a switch by a jump: a return in the database, none to perf. To perf a thunk is a function, and what a
# thunk of returns jumps back to a call.
[ "$name" = fibers ] || [ "$name" = thunks ] || python3 "$SOURCE/tests/golden/normalize_calls.py" rows perf.calls x.1.db || fail "perf and the database differ"
python3 "$SOURCE/tests/golden/check_names.py" plt x.1.db || fail "an entry of a PLT has another name"
perf script --itrace=be --ns -F "$perf_fields" -i x.1.data >perf.branches 2>perf.err || fail "perf script ends with $?" perf.err
python3 "$SOURCE/tests/golden/check_names.py" tails x.1.db perf.branches || fail "a tail call is no jump of perf's"
unseen=$(sql x.1.db "SELECT DISTINCT module || ' ' || function FROM calls WHERE flags & 1" | grep -vE "^\"?(${unseen_calls[$name]-nothing})( |\"|$)")
[ -z "$unseen" ] || fail "everything was recorded, yet there are calls that were not seen: $unseen"
bash "$SOURCE/tests/golden/check_db.sh" x.1.db || fail "the database breaks a rule"
python3 "$SOURCE/tests/golden/check_schema.py" "$SOURCE" x.1.db || fail "the database holds what docs/schema.md does not tell of"
[ "$(sql x.1.db "SELECT value FROM meta WHERE key = 'decode_errors'")" = 0 ] || fail "decoding errors"
gaps=$(sql x.1.db "SELECT reason, detail, start_ns, end_ns FROM gaps")
[ -z "$gaps" ] || fail "everything was recorded, yet there are gaps: $gaps"
[ -n "$name" ] || exit 0

known_tree x.1.db "$name" "${own[@]}"
