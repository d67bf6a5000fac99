#!/bin/bash
# base.sh SUITE: a minimal Debian with make and the build group, as a tarball in ~/.cache/stalltrap-fresh, unless it is there already. It
# is made anew when this file or the group changes.
. "$(dirname "$0")/lib.sh"
suite=$1
tarball=$(base_tarball "$suite")
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
# shellcheck disable=SC2046
mmdebstrap --quiet --variant=minbase --include="make $(echo $(build_group))" --dpkgopt=force-unsafe-io \
    --aptopt='Acquire::Retries "3"' "$suite" - "$mirror" | zstd -q -T0 -1 >"$part"
find "$cache" -name "$suite-*.tar.zst" -delete
mv "$part" "$tarball"
echo "made: $tarball ($(du -h "$tarball" | cut -f1))"
