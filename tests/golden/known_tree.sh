# A workload's tree in a database against its known one. Sourced, behind tests/cli/lib.sh.
# shellcheck shell=bash

# What these are linked with statically is not their own.
declare -A own_functions=([fibers]='main|fibers::.*' [exceptions]='main|frames::.*')

# known_tree DB NAME FILE...: NAME's tree; FILEs are NAME and the other programs and libraries that are its own
known_tree() {
    local db=$1 name=$2 file
    shift 2
    {
        echo "CREATE TEMP TABLE own(function PRIMARY KEY); CREATE TEMP TABLE own_module(module PRIMARY KEY);"
        "$known_trees/own_functions.sh" "${@/#/$programs/}" | grep -xE "${own_functions[$name]-.*}" | sed "s/.*/INSERT INTO own VALUES('&');/"
        printf "INSERT INTO own_module VALUES('%s');\n" "$@"
        cat "$SOURCE/tests/golden/tree.sql"
    } >tree.sql
    sqlite3 -readonly "$db" <tree.sql >found.tree || fail "$name: no tree"
    if [ -e "$known_trees/$name.calls" ]; then # several stacks in one thread: the order of the calls is known
        "$programs/treecheck" flat found.tree >found.calls
        diff -u "$known_trees/$name.calls" found.calls || fail "$name: the calls are not the known ones"
        "$programs/treecheck" --tails sibling compare "$known_trees/$name.nested" found.tree || fail "$name: the tree is not the known one" found.tree
    else
        "$programs/treecheck" --tails sibling compare "$known_trees/$name.tree" found.tree || fail "$name: the tree is not the known one" found.tree
    fi
}
