#!/bin/bash
# base.sh SUITE GROUP: a minimal Debian with the packages of a group (lib.sh), as a tarball in ~/.cache/stalltrap-fresh, unless it is there
# already. It is made anew when this file or the group changes.
. "$(dirname "$0")/lib.sh"
suite=$1 group=$2
tarball=$(base_tarball "$suite" "$group")
if [ -e "$tarball" ]; then
    echo "there: $tarball"
    exit 0
fi
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 -E '/debian/?$') ||
    die "apt has no package lists of a Debian mirror (as root: apt-get update)"
mkdir -p "$cache"
part=$(mktemp "$cache/.$suite.XXXXXX")
trap 'rm -f "$part"' EXIT
include=$("packages_$group" | xargs)
mmdebstrap --quiet --variant=minbase ${include:+"--include=$include"} --dpkgopt=force-unsafe-io \
    --aptopt='Acquire::Retries "3"' "$suite" - "$mirror" | zstd -q -T0 -1 >"$part"
find "$cache" -name "$suite-$group-*.tar.zst" -delete
mv "$part" "$tarball"
echo "made: $tarball ($(du -h "$tarball" | cut -f1))"
