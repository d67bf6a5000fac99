# guest_arm_pinned.sh SOURCE BUILD: whose calls they are, in rings of CPUs with kernel code: threads that take one CPU from each other, each with
# calls of its own. What the program itself says of them is compared outside. (A ring of a thread comes some time behind its birth.)
# File: arm-lib.sh.
. ./arm-lib.sh "$@"
"$STALLTRAP" arm --source intel-pt --kernel --rings cpu --ring 16M --no-decode -o pinned -- "$BUILD/tests/ptvm/pinned" 200 >arm.out 2>arm.err ||
    fail "arm ends with $?" arm.out arm.err
grep -E '^[0-9]+ [a-z0-9_]+ [0-9]+$' arm.out >pinned.1.pinned
[ "$(wc -l <pinned.1.pinned)" = 8 ] || fail "the program does not tell its calls" arm.out
outside pinned.1.data pinned
