#!/bin/bash
# What a target or a recording names may be a device, which opening starts, or a pipe, which opening waits for: it is looked at first.
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }
. "$(dirname "$0")/../cli/arm_lib.sh"

run "the target's program has the name of a device outside its mount namespace"
mkdir dev
mknod dev/watchdog c 1 3
unshare -m bash -c "mount -t tmpfs none dev && cp arm_target dev/watchdog && exec dev/watchdog busy 5 100000" >target.out &
target=$!
disown "$target"
started+=("$target")
# Of a file in another mount namespace the path begins at the machine's root, also where ours is elsewhere.
runs_there() { [[ $(readlink "/proc/$target/exe") == *"$work/dev/watchdog" ]]; }
wait_for "the target" runs_there
arm --source sample --callgraph dwarf --no-decode -o x -p "$target"
straced -e trace=open,openat,openat2
kill -INT "$arm"
wait_arm
is "exit status" 0 $status
has "the trace of what it opens" 'dev/watchdog' strace.out
is "times the device was opened" "" "$(grep 'dev/watchdog' strace.out | grep -v 'O_PATH\|/proc/' | head -3)"
kill "$target"

run "a database that is a device is not opened, and a pipe not waited for"
mknod null.db c 1 3
mkfifo pipe.db
for command in report "query SELECT" "export --to folded"; do
    for file in null.db pipe.db; do
        words=($command)
        timeout 60 strace -f -qq -o strace.out -e trace=open,openat,openat2 "$STALLTRAP" "${words[0]}" $file "${words[@]:1}" >out 2>err
        is "exit status of $command $file" 1 $?
        has "why" "'$file' is no regular file" err
        is "times it was opened" "" "$(grep "$file" strace.out | grep -v 'O_PATH' | head -3)"
    done
done

run "a BPF object that is a pipe"
mkfifo pipe.o
timeout 60 "$STALLTRAP" watch --on bpf:pipe.o -- /bin/true >out 2>err
is "exit status" 2 $?
has "why" 'pipe\.o is no regular file' err

run "a part of a recording that is a pipe"
"$STALLTRAP" arm --source sample --no-decode -q -o made -- /bin/true >out 2>err
mkdir parts
cp made.1.data parts/data
mkfifo parts/data.1
timeout 60 "$STALLTRAP" decode parts -o parts.db >out 2>err
is "exit status" 1 $?
has "why" "parts/data\.1.*is no regular file" err
rm parts/data.1
mknod parts/data.1 c 1 5
timeout 60 "$STALLTRAP" decode parts -o parts.db >out 2>err
is "exit status" 1 $?
has "why" "parts/data\.1.*is no regular file" err

run "a pipe that was named is read"
"$STALLTRAP" decode /dev/stdin -o piped.db <made.1.data >out 2>err
is "exit status" 0 $?
"$STALLTRAP" decode <(cat made.1.data) -o piped2.db >out 2>err
is "exit status" 0 $?

summary
