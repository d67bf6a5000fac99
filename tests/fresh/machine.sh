#!/bin/bash
# machine.sh SUITE: on a fresh Debian with the build group only, `make` and `make install` work, and the installed program does what it is
# for after the source tree has gone; the examples of the documents that were installed run as they are written.
. "$(dirname "$0")/lib.sh"
suite=$1
fresh_root "$suite" "$suite"

put_source /root/stalltrap
mkdir -p "$root/root/fresh"
cp "$SOURCE"/tests/fresh/{installed.sh,examples.sh,examples.table,forwarder.c,libfoo.c} "$SOURCE/tests/workloads/probe_note.h" "$root/root/fresh"
# No package is installed on the way: apt would find none.
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
inside sh -ec 'cd /root/stalltrap && make JOBS=2 && make install DESTDIR=/stage' >"$BUILD/fresh/$suite.make" 2>&1 ||
    { tail -40 "$BUILD/fresh/$suite.make"; die "make and make install on $suite"; }
! grep -q '^Installing:' "$BUILD/fresh/$suite.make" || die "make installed packages"
rm -rf "$root/root/stalltrap"
cp -a "$root/stage/." "$root/"
inside bash /root/fresh/installed.sh
for age in 300 40000000; do
    UPTIME=$age inside bash /root/fresh/installed.sh trap
done
inside bash /root/fresh/examples.sh
