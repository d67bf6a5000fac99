#!/bin/sh
# The first program of the guest: mounts the host's file system, read-only, as root, the run folder writable at the same path and memory
# over /tmp and /run; then starts the run folder's init.sh. /run/host is the host's file system with nothing mounted over it.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
# shellcheck disable=SC2043 # the place of the list
for m in @MODULES@; do insmod /mod/$m || echo "insmod $m failed"; done
O=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o $O,ro,cache=loose hostroot /root || { echo "ptvm: cannot mount the host's file system"; poweroff -f; }
# shellcheck disable=SC2013 # words are what it is about
for w in $(cat /proc/cmdline); do case $w in ptvm.run=*) R=${w#*=} ;; esac; done
mkdir /host
mount --bind /root /host
mount -t tmpfs tmp /root/tmp
mount -t tmpfs run /root/run
mkdir -p "/root$R" /root/run/host
mount -t 9p -o $O,cache=mmap run "/root$R" || { echo "ptvm: cannot mount the run folder $R"; poweroff -f; }
mount --move /host /root/run/host
mount --move /dev /root/dev
mount --move /proc /root/proc
mount --move /sys /root/sys
exec switch_root /root /bin/bash "$R/init.sh"
