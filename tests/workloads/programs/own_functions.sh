#!/bin/sh
# Prints the program's own functions, those its known tree is made of: one a line, C++ without parameters.
# usage: own_functions.sh FILE...   the program and its own shared objects, as built
set -u
[ $# -gt 0 ] || { echo "usage: own_functions.sh FILE..." >&2; exit 2; }
for file; do
    # What the compiler, the C library and headers of libraries bring is not the program's own; W: inline functions of C++.
    nm -C --defined-only "$file" | awk '
        $2 ~ /^[tTiW]$/ {
            name = $3
            sub(/\(.*/, "", name)
            if (name !~ /^(boost|std)::/ && name !~ /^(_start|_init|_fini|(de)?register_tm_clones|__do_global_dtors_aux|frame_dummy|data_start|_GLOBAL__sub_I_.*|__static_initialization_and_destruction_0)$/)
                print name
        }' || exit 1
done | sort -u
