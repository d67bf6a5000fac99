#!/bin/bash
# purge.sh SUITE: the package (package.sh) is installed on a Debian that has nothing else; doctor and the demo's main job run from it; when it is
# purged, nothing of it is left: no file, no user, no folder of sockets.
. "$(dirname "$0")/lib.sh"
suite=$1
kept=$BUILD/fresh/packages-$suite
log=$BUILD/fresh/$suite-purge.log
[ -d "$kept" ] || die "there is no package; tests/fresh/package.sh $suite makes it"
fresh_root "$suite" "$suite-purge" plain

# Every file, and who is who. Left out: what belongs to dpkg and apt, caches and logs that any package leaves, the previous versions of the
# lists of users, and adduser's lock.
state() {
    (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./root/given \
        -o -path './etc/*-' -o -path ./etc/ld.so.cache -o -path ./run/adduser \) -prune -o ! -type d -printf '%p %m %U:%G\n' -o -printf '%p/ %m %U:%G\n' | sort)
    (cd "$root/etc" && sort passwd group shadow gshadow)
}
apt() { inside env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1 || { tail -n 40 "$log"; die "apt-get $1"; }; }

mkdir -p "$root/root/given/build/tests/workloads"
cp "$kept"/stalltrap_*.deb "$root/root/given/stalltrap.deb"
cp "$kept/forwarder" "$kept/loadgen" "$root/root/given/build/tests/workloads/"
mkdir "$root/root/given/tests"
cp "$SOURCE/tests/demo.sh" "$root/root/given/tests/"
apt update
state >"$BUILD/fresh/$suite-before"

apt install --no-install-recommends -y /root/given/stalltrap.deb
inside getent passwd stalltrap >/dev/null || die "there is no user for decoding"
inside stalltrap doctor >"$log" 2>&1 || { cat "$log"; die "doctor"; }
grep -q '^yes  sample ' "$log" || { cat "$log"; die "doctor has no source sample"; }
inside env BUILD=/root/given/build STALLTRAP=stalltrap DEMO_DIR=/root/given/demo bash /root/given/tests/demo.sh >"$log" 2>&1 || { tail -n 60 "$log"; die "the demo's main job"; }
grep -q '^trap 1: thread .* "forwarder" off-CPU' "$log" || { tail -n 60 "$log"; die "the demo caught no stall"; }

apt purge -y --autoremove stalltrap
state >"$BUILD/fresh/$suite-after"
diff "$BUILD/fresh/$suite-before" "$BUILD/fresh/$suite-after" || die "the package left this behind (>), or took it away (<)"
