#!/bin/bash
# ELF files that were made to do harm, as what a trigger names and as the target: `arm` and `watch` end by themselves, with a sentence, and
# what they record of a program that runs has no less in it.
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }
. "$(dirname "$0")/../cli/arm_lib.sh"
# In the environment of whatever is started here, by whomever.
export ST_TEST_OF=$work
mkdir bad
python3 "$SOURCE/tests/hostile/elf_bad.py" arm_target bad >list || exit 1
[ "$(wc -l <list)" -gt 15 ] || fail "only $(wc -l <list) files"
mkfifo bad/pipe
mknod bad/device c 1 5
mkdir bad/folder
ln -s /dev/zero bad/link-to-a-device
printf '%s -\n' pipe device folder link-to-a-device >>list

# ends FILE TRIGGER: watch ends by itself, with what it says; it holds no library to blame
ends() {
    local status
    timeout 120 "$STALLTRAP" watch --on "$2" -- /bin/true >out 2>err
    status=$?
    case $status in
    0 | 4) ;;
    1 | 2 | 3) has "$1: why" '^stalltrap' err ;;
    *) fail "$1: $2 ends with $status: $(head -3 err)" ;;
    esac
}

# First of a file that is as it should be: else nothing below says anything.
run "a file that is whole"
timeout 120 "$STALLTRAP" watch --on "func:$work/arm_target!main>1ms" -- ./arm_target end 1 1 >out 2>err || fail "status $?: $(cat err)"
timeout 120 "$STALLTRAP" watch --on "func:$work/arm_target!maim>1ms" -- /bin/true >out 2>err
is "status" 2 $?
has "the nearest name" "did you mean 'main'" err

# Whoever reads it is another process; libbpf, which would open it here, is not asked to.
run "the process with the privileges reads nothing of the file"
cc -O1 -D_GNU_SOURCE -pthread -I"$SOURCE" "$SOURCE/tests/cli/mark_target.c" -o probed || exit 1
for trigger in "func:$work/probed!main>1ms" "call:$work/probed!main" "usdt:$work/probed:st_test:beat"; do
    timeout 120 strace -f -y -qq -o strace.out -e trace=openat,openat2,read,pread64,mmap "$STALLTRAP" watch --on "$trigger" -- /bin/true >out 2>err
    is "status of $trigger" 0 $?
    main=$(sed -n '1s/ .*//p' strace.out)
    is "times that it was opened to be read" "" "$(grep "$work/probed\"" strace.out | grep -v O_PATH | head -3)"
    has "$trigger: it is read" "pread64\([0-9]+<$work/probed>" strace.out
    is "$trigger: reads of it with privileges" "" "$(grep -E "^$main .*<$work/probed>, " strace.out | head -3)"
done

run "what a trigger names"
while read -r name _; do
    ends "$name" "func:$work/bad/$name!main>1ms"
    ends "$name" "call:$work/bad/$name!main"
    ends "$name" "usdt:$work/bad/$name:st_test:beat"
done <list

run "a table of symbols of six gigabytes, which the file has as a hole"
ends symbols-2^28 "func:$work/bad/symbols-2^28!main>1ms"
has "why" "cannot look for 'main' in '.*symbols-2.28': Cannot allocate memory" err

run "the target"
while read -r name runs; do
    [ "$runs" = runs ] || continue
    bad/$name idle 1000 >target.out &
    target=$!
    disown "$target"
    started+=("$target")
    timeout 120 "$STALLTRAP" arm --source sample --callgraph dwarf --no-decode --snapshots 1 --timeout 1s -o "$name" --on 'offcpu>60s,idle=learned' \
        -p "$target" >out 2>err
    is "$name: status" 4 $?
    lacks "$name: what it says" 'ended by signal|is no answer' err
    kill -0 "$target" || fail "$name: the target has ended"
    kill -KILL "$target"
done <list

run "nothing is left"
left() { (unset ST_TEST_OF; grep -lzx "ST_TEST_OF=$work" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); }
started_here() { [ -n "$(left)" ]; }
sleep 1000 &
orphan=$!
disown "$orphan"
started+=("$orphan")
wait_for "a process that is left to be seen" started_here
kill -KILL "$orphan"
none_left() { [ -z "$(left)" ]; }
wait_for "the end of what was started: $(left | xargs -r ps -o pid=,args= -p)" none_left
no_leftovers

summary
