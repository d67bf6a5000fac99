#!/bin/bash
# package.sh SUITE: the Debian package is built without network from what debian/control asks for; lintian has nothing to say that is not
# overridden; the symbols are in a package of their own; autopkgtest's tests pass; each shell finds the completions. The packages are kept for
# purge.sh, with the forwarder that it arms.
. "$(dirname "$0")/lib.sh"
suite=$1
kept=$BUILD/fresh/packages-$suite
log=$BUILD/fresh/$suite-package.log
rm -rf "$kept"
fresh_root "$suite" "$suite-package" package
put_source /root/stalltrap

show() { # WHY
    tail -n 40 "$log"
    die "$1"
}

inside unshare --net env DEB_BUILD_OPTIONS=parallel=2 sh -ec 'cd /root/stalltrap && dpkg-buildpackage -us -uc' >"$log" 2>&1 || show "dpkg-buildpackage"
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$SOURCE/debian/changelog")
mkdir "$kept"
for name in stalltrap_${version}_amd64 stalltrap-dbgsym_${version}_amd64; do
    mv "$root/root/$name.deb" "$kept/" || die "$name.deb was not built: $(ls "$root/root")"
    ln "$kept/$name.deb" "$root/root/" 2>/dev/null || cp "$kept/$name.deb" "$root/root/"
done
cp "$kept/stalltrap_${version}_amd64.deb" "$root/root/stalltrap.deb"

inside sh -c 'lintian --fail-on error,warning --show-overrides /root/stalltrap_*.changes' >"$log" 2>&1 || show "lintian"
! grep -E '^[EW]:' "$log" || die "lintian"

# The symbols are those of the program.
inside sh -ec '
    dpkg -x /root/stalltrap.deb /root/x
    dpkg -x /root/stalltrap-dbgsym_*.deb /root/x
    id=$(readelf -n /root/x/usr/bin/stalltrap | sed -n "s/.*Build ID: //p")
    readelf -S "/root/x/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug" 2>/dev/null | grep -q debug_info' || die "-dbgsym has not the symbols of the program"

# Its own tests, as autopkgtest runs them. This root is no machine of its own, but what it arms goes away with it.
inside sh -c 'cd /root && autopkgtest --ignore-restrictions=isolation-machine ./stalltrap.deb ./stalltrap/ -- null || [ $? = 2 ]' >"$log" 2>&1 || show "autopkgtest"
! grep -Eq '^demo +SKIP' "$log" || skip "autopkgtest: other work took the forwarder's CPU each time"
grep -Eq '^demo +PASS' "$log" || show "autopkgtest did not run the demo"

# Each shell finds what the package brought, by itself.
inside dpkg -i /root/stalltrap.deb >"$log" 2>&1 || show "dpkg -i"
inside bash --norc -c '. /usr/share/bash-completion/bash_completion; _completion_loader stalltrap; complete -p stalltrap' | grep -q 'complete -F _stalltrap stalltrap' || die "bash finds no completion"
[ "$(inside zsh -f -c 'autoload -U compinit; compinit -u -D; print $_comps[stalltrap]')" = _stalltrap ] || die "zsh finds no completion"
inside fish -c 'complete -C "stalltrap rep"' | grep -q '^report' || die "fish finds no completion"

inside sh -ec 'cd /root/stalltrap/tests/workloads/forwarder
    cc -D_GNU_SOURCE -std=gnu17 -g -O1 -fno-omit-frame-pointer $(ls *.c | grep -v loadgen) -o /root/forwarder -pthread
    cc -D_GNU_SOURCE -std=gnu17 -g -O1 -fno-omit-frame-pointer loadgen.c -o /root/loadgen -pthread'
cp "$root/root/forwarder" "$root/root/loadgen" "$kept/"
echo "built and tried: $(cd "$kept" && echo *.deb)"
