#!/bin/bash
# build-kernel.sh OUT SUITE: unpacks the stock amd64 kernel of a Debian suite into OUT (vmlinuz, lib/modules) and makes
# OUT/initramfs.gz, whose guest takes the host's file system, read-only, as its root. setup.sh calls it; OUT must exist.
set -euo pipefail
. "$(dirname "$0")/common.sh"
out=$1 suite=$2

need_packages busybox-static kmod cpio xz-utils dpkg-dev

work=$out/work
mkdir -p "$work" "$out/lib"

# linux-image-amd64 names the image; from 7.x on that is split into -binary and -modules packages.
fetch_kernel() {
    local image p
    apt_suite "$work/apt" "$suite"
    cd "$work"
    image=$(apt-cache "${APT[@]}" -t "$suite" depends linux-image-amd64 | awk '/Depends: linux-image-/ {print $2; exit}')
    [ -n "$image" ] || die "Debian $suite has no linux-image-amd64"
    apt-get "${APT[@]}" download -qq "$image" || die "cannot fetch $image"
    for p in $(dpkg -I "$image"_*.deb | sed -n 's/^ Depends: //p' | tr ',' '\n' | grep -oE 'linux-(binary|modules)-[^ (]+'); do
        apt-get "${APT[@]}" download -qq "$p" || die "cannot fetch $p"
    done
    for p in *.deb; do dpkg -x "$p" unpacked; done
    cd - >/dev/null
}

# Modules that the guest needs before it has a root, dependencies first; a name without a module is built in.
declare -A seen
order=()
add_module() {
    local n=${1//-/_} f d o
    [ -n "${seen[$n]:-}" ] && return
    seen[$n]=1
    f=$(find "$modules" -name "$1.ko*" -o -name "${n//_/-}.ko*" -o -name "$n.ko*" | head -n 1)
    [ -n "$f" ] || return 0
    for d in $(modinfo -F depends "$f" | tr , ' '); do add_module "$d"; done
    o=$(basename "${f%.xz}")
    case $f in *.xz) xz -dc "$f" >"$root/mod/$o" ;; *) cp "$f" "$root/mod/$o" ;; esac
    order+=("$o")
}

make_initramfs() {
    local a m
    root=$work/root
    mkdir -p "$root"/{bin,dev,proc,sys,mod,root}
    cp "$(command -v busybox)" "$root/bin/busybox"
    for a in sh mount insmod switch_root mkdir poweroff cat; do ln -s busybox "$root/bin/$a"; done
    for m in virtio_pci virtio_rng 9pnet_virtio 9p; do add_module "$m"; done
    sed "s|@MODULES@|${order[*]}|" "$here/initramfs-init.sh" >"$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$out/initramfs.gz"
}

fetch_kernel
# Packages of one kernel may use /lib and /usr/lib side by side.
for d in "$work"/unpacked/lib/modules/* "$work"/unpacked/usr/lib/modules/*; do
    [ -d "$d" ] || continue
    version=$(basename "$d")
    mkdir -p "$out/lib/modules/$version"
    cp -al "$d/." "$out/lib/modules/$version/"
done
modules=$out/lib/modules/${version:?the kernel packages hold no modules}
rm -f "$modules/build" "$modules/source"
# Two thirds of the size, for devices that the machine does not have.
rm -rf "$modules"/kernel/sound "$modules"/kernel/drivers/{gpu,media,infiniband,staging,iio,scsi,mmc,hwmon,usb,input,ata,mtd} \
    "$modules"/kernel/drivers/net/{wireless,ethernet,can,usb,wan,arcnet}
image=$(find "$work/unpacked" -type f -name 'vmlinuz*' -print -quit)
[ -s "$image" ] || image=$(find "$modules" -type f -name 'vmlinuz*' -print -quit)
[ -s "$image" ] || die "no vmlinuz in the kernel packages of Debian $suite"
cp "$image" "$out/vmlinuz"
depmod -b "$out" "$version" 2>"$work/depmod" || die "depmod failed: $(cat "$work/depmod")"
make_initramfs
rm -rf "$work"
echo "$version" >"$out/version"
