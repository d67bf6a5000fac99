#!/bin/bash
# snap: finds the arm by its pid or a target's, and answers when the file is whole.
. "$(dirname "$0")/arm_lib.sh"
export XDG_RUNTIME_DIR=$work

run "nobody is armed"
"$STALLTRAP" snap 1 >snap.out 2>snap.err
is "exit status" 1 $?
has "message" 'no running .stalltrap arm. of yours has pid 1 or records process 1' snap.err

start_target idle 20
arm --no-decode -o snap -p "$target"
for who in "$arm" "$target"; do
    run "by the pid of $([ "$who" = "$arm" ] && echo the arm || echo its target)"
    "$STALLTRAP" snap "$who" >snap.out 2>snap.err
    is "exit status" 0 $?
    file=$(sed -n 's/^wrote //p' snap.out)
    [ -s "$file" ] || fail "the file '$file' is not there when snap answers"
    perf_reads "$file"
done
is "the folder of the answer" "$work" "$(dirname "$file")"

run "nobody can be asked: that is no answer"
mkdir -p own/stalltrap
touch own/stalltrap/1.sock
cp "$STALLTRAP" own/stalltrap-copy
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups) # root looks in more folders
[ "$(id -u)" != 0 ] || chown -R 65534 own
( # with room for one descriptor more: the folder of sockets, and no socket
    for fd in "/proc/$BASHPID/fd"/*; do
        fd=${fd##*/}
        [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
    XDG_RUNTIME_DIR=$work/own exec "${as[@]}" prlimit --nofile=4 own/stalltrap-copy snap
) >snap.out 2>snap.err
is "exit status" 1 $?
has "message" 'cannot look for recordings: Too many open files' snap.err
lacks "an answer that nobody gave" 'no running|is running' snap.err

run "two arms: the one that is meant must be named"
other=$arm
start_target idle 20
arm --no-decode -o second -p "$target"
"$STALLTRAP" snap >snap.out 2>snap.err
is "exit status" 2 $?
has "message" 'recordings are running: say which' snap.err
has "list" "^ *$other records process " snap.err
has "list" "^ *$arm records process $target" snap.err
"$STALLTRAP" snap "$target" >snap.out 2>snap.err
is "exit status" 0 $?
has "answer" "^wrote $work/second\.1\.data$" snap.out

run "an arm that ends removes its socket"
kill -TERM "$arm"
wait_arm
"$STALLTRAP" snap "$target" >snap.out 2>snap.err
is "exit status" 1 $?

run "snapshots on request count for the exit status"
kill -TERM "$other"
arm=$other
wait_arm
is "exit status after two snapshots on request" 0 $status

run "an answer of 1,800 bytes, of which a terminal is given nothing that it would obey"
here=$PWD
part=$(printf '\033[31md%.0s' {1..33})
for _ in {1..9}; do
    mkdir "$part" && cd "$part" || exit 1
done
deep=$PWD
start_target idle 20
arm --no-decode -o deep -p "$target"
"$STALLTRAP" snap "$target" >"$here/snap.out" 2>"$here/snap.err"
is "exit status" 0 $?
is "the answer's name" "wrote ${deep//$'\033'/\\x1b}/deep.1.data" "$(cat "$here/snap.out")"
[ -s deep.1.data ] || fail "the file is not there"
kill -TERM "$arm"
wait_arm
cd "$here" || exit 1

run "a recording of 200 processes is found by the last of them"
sleepers=()
for _ in {1..200}; do
    sleep 1000 &
    sleepers+=($!)
done
started+=("${sleepers[@]}")
arm --source sample --no-decode -o many -p "$(IFS=,; echo "${sleepers[*]}")"
"$STALLTRAP" snap "${sleepers[-1]}" >snap.out 2>snap.err
is "exit status" 0 $?
has "answer" "^wrote $work/many\.1\.data$" snap.out
kill -TERM "$arm"
wait_arm

run "wrong use"
"$STALLTRAP" snap nobody >snap.out 2>snap.err
is "exit status" 2 $?
has "message" "PID: 'nobody' is no whole number" snap.err
"$STALLTRAP" snap 1 2 >snap.out 2>snap.err
is "exit status" 2 $?

summary
