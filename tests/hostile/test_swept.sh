#!/bin/bash
# What SIGKILL leaves of an arm in the middle of a snapshot, the next arm with that prefix removes. strace kills it at the first file that it
# brings to disk: the folder of code is there, and the snapshot has no name yet.
. "$(dirname "$0")/../cli/arm_lib.sh"
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }
cc -O1 "$SOURCE/tests/hostile/deleted_code.c" -o "$work/deleted_code" || exit 1
mkdir own

# left: what there is in the folder of snapshots, without the chance in their names
left() { (cd own && find . -mindepth 1 -printf '%P\n' | sed -E 's/\.[A-Za-z0-9]{6}$/.CHANCE/' | sort | xargs); }

run "a snapshot that is killed leaves its folder of code and a file"
"$work/deleted_code" "$work" >target.out &
target=$!
started+=("$target")
wait_for "the target" grep -q ready target.out
arm --source sample --no-decode -o own/x -p "$target"
straced -e trace=fsync -e inject=fsync:signal=KILL:when=1
kill -INT "$arm"
gone() { ! alive "$arm"; }
wait_for "its end" gone
is "what it left" ".x.1.data.CHANCE x.1.code x.1.code/planted" "$(left)"

run "an arm with another prefix leaves that alone, the next with this one takes it away"
"$STALLTRAP" arm --source sample --no-decode -q -o own/y -- /bin/true >out 2>err
is "exit status" 0 $?
is "what there is" ".x.1.data.CHANCE x.1.code x.1.code/planted y.1.data" "$(left)"
"$STALLTRAP" arm --source sample --no-decode -q -o own/x -- /bin/true >out 2>err
is "exit status" 0 $?
is "what there is" "x.1.data y.1.data" "$(left)"

run "what a snapshot needs stays, also when the snapshot is elsewhere"
arm --source sample --no-decode -o own/x -p "$target"
kill -INT "$arm"
wait_arm
is "exit status" 0 "$status"
mv own/x.2.data moved.data
"$STALLTRAP" arm --source sample --no-decode -q -o own/x -- /bin/true >out 2>err
[ -e own/x.2.code/first ] || fail "its code is gone: $(left)"

summary
