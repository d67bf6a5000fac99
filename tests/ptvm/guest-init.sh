# The guest's init, in its run folder: the common set-up of every run, then the script of this run (files env and command beside this
# one), whose exit status goes to the file status; then power off. run.sh copies it there.
run=$(dirname "$0")
export PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run/home LANG=C.UTF-8 PTVM_OUT=$run/out
cd "$run" || exit 1
ln -sf /proc/self/fd /dev/fd
ln -sf fd/0 /dev/stdin
ln -sf fd/1 /dev/stdout
ln -sf fd/2 /dev/stderr
# What is printed goes to the second serial line as it comes, so that a hang keeps none of it; by a pipe, for it is no terminal.
stty -F /dev/ttyS1 raw -echo
exec > >(exec cat >/dev/ttyS1) 2>&1 </dev/null
printer=$!
mkdir -p /run/bin /run/home /run/lock /dev/pts /dev/shm

mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp /dev/shm
ip link set lo up
ulimit -l unlimited
echo 0 >/proc/sys/kernel/kptr_restrict
echo -1 >/proc/sys/kernel/perf_event_paranoid

. ./env # PTVM_KERNEL, PTVM_SHARES and what --env gave
# The kernel's modules are not where modprobe looks; the kernel asks for some of them itself.
printf '#!/bin/sh\nexec /sbin/modprobe -d %q "$@"\n' "$PTVM_KERNEL" >/run/bin/modprobe
chmod +x /run/bin/modprobe
echo /run/bin/modprobe >/proc/sys/kernel/modprobe
for share in "${PTVM_SHARES[@]}"; do
    mkdir -p "$share" && mount --bind "/run/host$share" "$share"
done
unset share PTVM_SHARES

. ./command # the array command: script and arguments
bash -e "${command[@]}"
status=$?
exec >&- 2>&-
wait "$printer"
echo $status >status.tmp && mv status.tmp status
sync
echo o >/proc/sysrq-trigger
sleep 60
