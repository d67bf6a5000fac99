# guest_arm_count.sh SOURCE BUILD: a program that makes 931,551 calls, and counts them itself, in rings that hold all of
# it and in rings that wrapped many times. What it brings out is decoded and compared outside. File: arm-lib.sh.
. ./arm-lib.sh "$@"

count_nest() { # NAME ARM-OPTION...
    local name=$1
    shift
    "$STALLTRAP" arm --source intel-pt --no-kernel --no-decode -o "$name" "$@" -- "$nest" 60100 counted >arm.out 2>arm.err ||
        fail "$name: arm ends with $?" arm.out arm.err
    ls -l "$name.1.data"
}

count_nest count --ring 32M
grep -E '^(leaf|mid|rec|viaptr|outer) [0-9]+$' arm.out >count.1.counted
[ "$(wc -l <count.1.counted)" = 5 ] || fail "nest does not tell its counts" arm.out
outside count.1.data counted
nest_calls count 60100

count_nest last --rings thread --ring 256K
outside last.1.data branches
nest_calls last 60100 5000
