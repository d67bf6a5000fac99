#!/bin/bash
# arm as root writes into a folder that belongs to the target's user, who puts links in the place of what arm makes there. strace holds arm at
# the moments between.
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }
. "$(dirname "$0")/../cli/arm_lib.sh"

cc -O1 "$SOURCE/tests/hostile/deleted_code.c" -o "$work/deleted_code" || exit 1

as_nobody() { # COMMAND: by bash, as the user nobody
    setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$1"
}

# scene: a folder of nobody's, one of root's, and a target with code that has no file
scene() {
    rm -rf theirs roots
    mkdir theirs roots
    chown 65534:65534 theirs
    chmod 755 theirs roots
    for file in passwd shadow hosts; do echo "root's" >roots/$file; done
    setpriv --reuid 65534 --regid 65534 --clear-groups "$work/deleted_code" "$work/theirs" >target.out &
    target=$!
    started+=("$target")
    wait_for "the target" grep -q ready target.out
}

# attack CALL WHERE COMMAND: a snapshot, held for 3 s at the first CALL while nobody runs COMMAND
attack() {
    arm --source sample --no-decode -o theirs/x -p "$target"
    straced -e trace="$1" -e inject="$1:$2=3000000:when=1"
    kill -INT "$arm"
    wait_for "the folder of code" test -d theirs/x.1.code
    [ "$1" = mkdirat ] || wait_for "a copy in it" test -e theirs/x.1.code/first -o -e theirs/x.1.code/planted
    as_nobody "$3" || fail "nobody could not do it: $3"
    wait_arm
    kill -KILL "$target"
}

# roots_files: what is in root's folder is what was put there, and all of it
roots_files() {
    is "files in root's folder" "hosts passwd shadow" "$(ls roots | xargs)"
    is "what they hold" "root's" "$(cat roots/* | sort -u)"
}

run "the folder of code becomes a link after its first file: nothing is created where the link leads"
scene
attack fsync delay_enter "cd theirs && mv x.1.code old && ln -s ../roots x.1.code"
roots_files
[ -e theirs/old/planted ] || fail "the copies are not in the folder that arm made: $(ls theirs/old)"

run "it becomes one before it is opened"
scene
attack mkdirat delay_exit "cd theirs && mv x.1.code old && ln -s ../roots x.1.code"
roots_files
has "warning" 'code without a file could not be copied' err

run "and the snapshot is taken away, so that arm cleans up: nothing is removed where the link leads"
scene
attack fsync delay_enter "cd theirs && mv x.1.code old && ln -s ../roots x.1.code && rm .x.1.data.??????"
roots_files
is "exit status" 1 $status

# own_scene: the folder of the prefix is root's, in one of nobody's; beside that, one that root alone may enter, with a private recording
own_scene() {
    scene
    kill -KILL "$target"
    mkdir theirs/own
    chmod 700 roots
    "$STALLTRAP" arm --source sample --no-decode -q -o private -- /bin/true >out 2>err
    mv private.1.data roots/private.data
    sleep 1000 &
    target=$!
    started+=("$target")
}

# only_private: root's folder holds what it held
only_private() {
    is "files in root's folder" "hosts passwd private.data shadow" "$(ls -A roots | xargs)"
}

run "after arming the prefix's folder is moved, and becomes a link: all is written to the folder that it was"
own_scene
arm --source sample -o theirs/own/x -p "$target"
as_nobody "cd theirs && mv own old && ln -s ../roots own" || fail "nobody could not move it"
kill -USR2 "$arm"
wait_for "the first snapshot" grep -q '^wrote theirs/own/x.1.data, theirs/own/x.1.db' out
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
has "the second snapshot" '^wrote theirs/own/x.2.data, theirs/own/x.2.db' out
is "files" "x.1.data x.1.db x.2.data x.2.db" "$(ls -A theirs/old | xargs)"
only_private

run "a snapshot that waits to be decoded becomes a link to a recording of root's: that is not read"
own_scene
chown 65534 theirs/own
arm --source sample -o theirs/own/x --then 'shell:while [ ! -e go ]; do sleep 0.1; done' -p "$target"
kill -USR2 "$arm"
wait_for "the first snapshot" grep -q '^wrote theirs/own/x.1.data' out
kill -USR2 "$arm"
wait_for "the second snapshot" test -e theirs/own/x.2.data
as_nobody "cd theirs/own && mv x.2.data old && ln -s ../../roots/private.data x.2.data" || fail "nobody could not replace it"
touch go
wait_for "what becomes of the second" grep -q '^wrote theirs/own/x.2.data' out
kill -INT "$arm"
wait_arm
rm go
is "exit status" 0 $status
has "warning" "'theirs/own/x.2.data' is not decoded: it has gone, or another file has its name" err
is "databases" "x.1.db x.3.db" "$(cd theirs/own && ls *.db | xargs)"
only_private

run "so it is for a snapshot in perf's directory form: decode goes by the descriptors that arm hands over"
mkdir made made/parts secret
"$STALLTRAP" arm --source sample --no-decode -q -o made/x -- /bin/true >out 2>err
mv made/x.1.data made/parts/data
exec 8<made/parts 7<made
mv made old
ln -s secret made
"$STALLTRAP" decode made/parts --given-input=8 --given-folder=7 -o made/parts.db >out 2>err
is "exit status" 0 $?
exec 8<&- 7<&-
has "the line" '^wrote made/parts.db' out
is "files" "parts parts.db" "$(ls -A old | xargs)"
is "files where the link leads" "" "$(ls -A secret)"
rm -rf made old secret

run "where a name is a device, a link, a folder or a pipe, it stays one"
"$STALLTRAP" arm --source sample -q -o made -- /bin/true >out 2>err
[ -e made.1.db ] || fail "no database to export" 
mkdir folder
mknod null c 1 3
mkfifo pipe
ln -s elsewhere link
for kind in null folder pipe link; do
    before=$(stat -c '%F %t,%T' $kind)
    "$STALLTRAP" decode -f made.1.data -o $kind >out 2>err
    is "exit status for $kind" 1 $?
    has "why" "$kind.*(folder|link|device or pipe)" err
    is "what $kind is" "$before" "$(stat -c '%F %t,%T' $kind)"
done
[ ! -e elsewhere ] || fail "the link was followed"
no_leftovers

run "what root writes by way of sudo is the user's in the user's folders and in /tmp, and root's elsewhere"
mkdir own sticky other
chown 65534 own
chmod 1777 sticky
for folder in own sticky other; do
    SUDO_UID=65534 SUDO_GID=65533 "$STALLTRAP" arm --source sample --no-decode -q -o $folder/x -- /bin/true >out 2>err
    is "exit status" 0 $?
    is "owner in $folder" "$([ $folder = other ] && echo 0:0 || echo 65534:65533)" "$(stat -c %u:%g $folder/x.1.data)"
done

summary
