#!/bin/bash
# The program is configured and installed from a tree without tests, as a source package without them has it. What is copied is not built
# again: the program that is there already stands for it.
set -u
. "$SOURCE/tests/cli/lib.sh"

mkdir tree
for entry in "$SOURCE"/*; do
    case ${entry##*/} in
    tests) ;;
    *) [ -e "$entry/CMakeCache.txt" ] || cp -r "$entry" tree/ || fail "cp $entry" ;;
    esac
done
[ -e tree/CMakeLists.txt ] && [ ! -e tree/tests ] || fail "no tree without tests"
unset DESTDIR
cmake -S tree -B built --install-prefix "$work/to" >configured 2>&1 || fail "cmake cannot configure a tree without tests" configured
cmake --build built --target help >targets 2>&1 || fail "no list of targets" targets
grep -qwE 'stalltrap' targets || fail "the program is no target" targets
cp "$STALLTRAP" built/stalltrap || fail "cp"
cmake --install built >installed 2>&1 || fail "cmake --install from a tree without tests" installed

to/bin/stalltrap --version >version || fail "the installed program does not run" version
for file in include/stalltrap/stalltrap.bpf.h include/stalltrap/base/stall_record.h share/man/man1/stalltrap.1 share/doc/stalltrap/README.md \
    share/doc/stalltrap/schema.md share/bash-completion/completions/stalltrap; do
    [ -s "to/$file" ] || { find to -type f >there; fail "$file is not installed" there; }
done
exit 0
