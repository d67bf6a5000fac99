#!/bin/bash
# Makes the recordings of this folder anew, from newborn.c: what test_recordings.sh decodes. For root, on a machine with perf and BPF; by hand,
# when the snapshot's format or the program changes. The results say then what they are to say: read them before they are committed.
# usage: record.sh BUILD [NAME...]
set -eu
here=$(dirname "$(realpath "$0")")
stalltrap=$(realpath "$1")/stalltrap
shift
# A folder whose name says nothing of this machine: names of files stand in a recording.
folder=/opt/stalltrap-recording
rm -rf $folder
mkdir $folder
trap 'rm -rf $folder' EXIT
cp "$stalltrap" $folder/
cd $folder
cc -O1 -Wall -fno-omit-frame-pointer -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -nostdlib -static \
    -Wl,--build-id -o newborn "$here/newborn.c"
zstd -q -f -19 newborn -o "$here/newborn.zst"

# The host's name stands in it too.
arm() {
    env -i PATH=/usr/bin:/bin HOME=$folder unshare -u bash -c 'hostname recorder; exec ./stalltrap arm --source sample --no-decode "$@"' _ "$@"
}

# A command from its first instruction, in rings of CPUs; its end is the snapshot.
command() {
    arm --freq 5000 -o command -- ./newborn </dev/null
}

# A process that is there already, in rings of threads, with every system call; a trigger fires in the midst of it.
attached() {
    mkfifo go armed
    ./newborn <go &
    exec 3>go
    arm --freq 5000 --rings thread --syscalls --on 'offcpu>2ms,idle=yes,state=sleeping' --after 30ms -p $! -o attached --ready-fd 9 9>armed &
    read -r _ <armed
    echo >&3
    exec 3>&-
    wait
}

for name in "${@:-command attached}"; do
    for each in $name; do
        $each
        zstd -q -f -19 $each.1.data -o "$here/$each.data.zst"
        perf script --ns --show-switch-events --show-task-events -F comm,tid,time,event,trace,ip,sym -i $each.1.data 2>/dev/null | zstd -q -f -19 -o "$here/$each.perf.zst"
    done
done
