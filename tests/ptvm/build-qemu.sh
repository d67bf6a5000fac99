#!/bin/bash
# build-qemu.sh OUT: makes OUT/qemu-system-x86_64, QEMU's software emulation with Intel PT, from Debian's source package and the patch
# beside this file, and OUT/fw, its firmware. About 90 s on 2 cores. setup.sh calls it; OUT must exist.
set -euo pipefail
. "$(dirname "$0")/common.sh"
out=$1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's python and meson, not those of somebody's home

need_packages ninja-build meson pkg-config gcc libc6-dev libglib2.0-dev libpixman-1-dev libfdt-dev libattr1-dev libcap-ng-dev \
    zlib1g-dev python3 python3-venv flex bison dpkg-dev patch xz-utils

work=$out/work
mkdir -p "$work" "$out/fw"
apt_suite "$work/apt" bookworm
cd "$work"
apt-get "${APT[@]}" download -qq seabios qemu-system-data || die "cannot fetch QEMU's firmware packages"
for d in seabios_*.deb qemu-system-data_*.deb; do dpkg -x "$d" firmware; done
cp -a firmware/usr/share/qemu/linuxboot*.bin firmware/usr/share/qemu/kvmvapic.bin firmware/usr/share/seabios/bios*.bin "$out/fw/"

# apt has checked the source's hashes against the signed release file; its maker's own signature needs a key that is not installed.
apt-get "${APT[@]}" source -qq --download-only qemu || die "cannot fetch QEMU's source package"
dpkg-source --no-check -x qemu_*.dsc src >/dev/null
patch -s -d src -p1 <"$here/intel-pt-tcg.patch" || die "the patch does not apply to $(echo qemu_*.dsc)"

mkdir build
cd build
step() { # a step of the build, whose output matters only when it fails
    "$@" >step.out 2>&1 || {
        tail -n 30 step.out >&2
        die "building QEMU failed at: $1"
    }
}
step ../src/configure --meson=/usr/bin/meson --target-list=x86_64-softmmu --without-default-features \
    --without-default-devices --with-devices-x86_64=ptlab --enable-system --enable-tcg --enable-fdt=system --enable-attr \
    --enable-cap-ng --enable-virtfs --disable-debug-info --disable-werror --with-git-submodules=ignore
step ninja -j"${PTVM_JOBS:-$(nproc)}" qemu-system-x86_64
strip -o "$out/qemu-system-x86_64" qemu-system-x86_64
cd /
rm -rf "$work"
"$out/qemu-system-x86_64" --version | head -n 1 >"$out/version"
