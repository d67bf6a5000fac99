#!/bin/bash
# What guest_programs.sh brought out of the PT machine, every workload and real programs, decoded by both walks, by perf and by libipt's
# instruction decoder: same branches, counts and calls, no error; the workloads' trees are their known ones.
# usage: programs.sh FOLDER [NAME...]    BUILD is the build folder
set -u
BUILD=$(realpath "${BUILD:-build}")
SOURCE=$(realpath "$(dirname "$0")/../..")
STALLTRAP=$BUILD/stalltrap
from=$(realpath "$1")
shift
export BUILD SOURCE STALLTRAP
# shellcheck source=tests/cli/lib.sh
. "$SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/golden/known_tree.sh
. "$SOURCE/tests/golden/known_tree.sh"

decode() { # OPTION...
    "$STALLTRAP" decode --buildid-dir "$from/debug" "$@" 2>err || fail "$name: decode $* ends with $?" err
}

walks_agree() { # DATA
    decode --dump branches "$1" | sha256sum >fast.sum
    decode --reference --dump branches "$1" | tee >(wc -l >lines) | sha256sum >slow.sum
    cmp fast.sum slow.sum || fail "$name: the fast walk's branches are not libipt's"
    decode --stats "$1" | jq -S 'del(.seconds, .slow)' >fast.stats
    decode --reference --stats "$1" | jq -S 'del(.seconds, .slow)' >slow.stats
    diff fast.stats slow.stats || fail "$name: the counts differ"
    [ "$(jq '.errors + .gaps' fast.stats)" = 0 ] || fail "$name: errors or gaps" fast.stats
}

perf_agrees() { # DATA
    perf --buildid-dir "$from/debug" script --itrace=cre --ns -F "$perf_fields" -i "$1" >perf.calls 2>perf.err || fail "$name: perf script ends with $?" perf.err
    decode --dump calls "$1" >dump.calls
    python3 "$SOURCE/tests/golden/normalize_calls.py" dump perf.calls dump.calls >compared || fail "$name: perf and decode --dump calls differ" compared
    case $name in fibers* | thunks* | goroutines* | fork_exec* | vfork_exec*) return ;; esac # see calls.sh; perf's calls go on over an exec
    python3 "$SOURCE/tests/golden/normalize_calls.py" rows perf.calls x.db >compared || fail "$name: perf and the database differ" compared
}

# A decoder of instructions knows one process and one program.
instructions_agree() { # DATA
    local bits=64
    case $name in
    fork_exec* | vfork_exec* | gcc* | dlopen_close*) echo "several programs, or code in the place of other code" >insn; return ;;
    code32*) bits=32 ;;
    esac
    python3 "$SOURCE/tests/long/against_insn.py" "$STALLTRAP" "$BUILD/tests/long/insn_walk" "$1" $bits "$from/vdso.so" "$from/debug" >insn ||
        fail "$name: libipt's instruction decoder finds something else" insn
}

tree_is_known() {
    local program=${name%%-*}
    case $program in
    dlopen_close) known_tree x.db $program $program plugin_a.so plugin_b.so ;;
    plt_*) known_tree x.db $program $program plt_lib.so ;;
    *fork_exec) known_tree x.db $program $program exec_target ;;
    *) [ ! -e "$known_trees/$program.tree" ] || known_tree x.db $program $program ;;
    esac
}

[ $# -gt 0 ] || set -- $(basename -s .data "$from"/*.data)
for name; do
    data=$from/$name.data
    rm -f x.db
    walks_agree "$data"
    decode "$data" -o x.db >out
    bash "$SOURCE/tests/golden/check_db.sh" x.db >out || fail "$name: the database breaks a rule" out
    perf_agrees "$data"
    instructions_agree "$data"
    tree_is_known
    echo "$name: $(jq .instructions fast.stats) instructions, $(cat lines) branches, $(jq .calls fast.stats) calls: the same to all ($(tail -n 1 insn))"
done
