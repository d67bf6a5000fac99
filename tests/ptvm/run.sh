#!/bin/bash
# run.sh [OPTION...] SCRIPT [FILE...] [-- ARG...]: boots the PT machine, runs SCRIPT in it with ARGs by `bash -e`, prints what it printed
# and exits with its status.
#
#   --suite SUITE    the kernel's Debian suite (default bookworm)
#   --dir DIR        where setup.sh made the machine (default as there)
#   --out DIR        copies what SCRIPT left in the folder $PTVM_OUT to DIR
#   --share PATH     shows a folder below /tmp or /run, read-only, under the same path; repeatable
#   --env NAME=VALUE sets a variable for SCRIPT; repeatable
#   --timeout SEC    power off after so long (default 300)
#   --smp N, --mem MIB           CPUs (2) and memory (1500)
#   --append WORDS, --cpu FLAGS  more kernel words; more CPU flags (",x-pt-ovf-period=20000" injects overflows)
#   --keep           keeps the run folder and says where it is
#   --native         no machine: runs SCRIPT on this computer, which has Intel PT, as root, in the same surroundings; what it changes of
#                    perf_event_paranoid and kptr_restrict is put back
#
# The guest sees the host's file system read-only, except /tmp and /run, which are its own memory. SCRIPT and the FILEs are
# copied to the run folder, SCRIPT's working directory, writable under the same path in guest and host.
# Exit: SCRIPT's status; 124 it took too long; 125 the guest ended without a status, or could not start. Both show the end of the console.
set -euo pipefail
. "$(dirname "$0")/common.sh"
PTVM_EXIT=125
suite=bookworm dir='' out='' limit=300 smp=2 mem=1500 append=quiet cpuflags='' keep='' native=''
shares=() vars=() files=() args=()

usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

while [ $# -gt 0 ]; do
    case $1 in
    --suite | --dir | --out | --share | --env | --timeout | --smp | --mem | --append | --cpu) [ $# -gt 1 ] || die "$1 needs a value" ;;
    esac
    case $1 in
    --suite) suite=$2 ;;
    --dir) dir=$2 ;;
    --out) out=$2 ;;
    --share) shares+=("$(realpath -e "$2")") ;;
    --env) vars+=("$2") ;;
    --timeout) limit=$2 ;;
    --smp) smp=$2 ;;
    --mem) mem=$2 ;;
    --append) append="$append $2" ;;
    --cpu) cpuflags=$2 ;;
    --keep) keep=1; shift; continue ;;
    --native) native=1; shift; continue ;;
    -h | --help) usage; exit 0 ;;
    -*) die "unknown option $1 (--help tells them)" ;;
    *) break ;;
    esac
    shift 2
done
[ $# -gt 0 ] || die "no script to run (--help tells the usage)"
while [ $# -gt 0 ]; do
    [ "$1" = -- ] && { shift; args=("$@"); break; }
    [ -r "$1" ] || die "cannot read $1"
    files+=("$1")
    shift
done

find_machine() {
    dir=$(ptvm_dir "$dir")
    qemu=$(qemu_build "$dir") kernel=$(kernel_build "$dir" "$suite")
    for part in "$qemu" "$kernel"; do
        [ -d "$part" ] || die "the machine is not set up: there is no $part; run: $here/setup.sh $dir $suite"
    done
    kernel=$(realpath "$kernel")
    case $kernel/ in /tmp/* | /run/*) shares+=("$kernel") ;; esac
}
if [ -z "$native" ]; then
    find_machine
else
    [ -d /sys/bus/event_source/devices/intel_pt ] || die "--native: this computer has no Intel PT (no intel_pt PMU)"
    [ "$(id -u)" = 0 ] || die "--native: only root can make the surroundings that the tests need"
fi

run=$(mktemp -d "${TMPDIR:-/tmp}/ptvm.XXXXXX")
run=$(realpath "$run")
pid=''
restore=() # FILE VALUE: settings of this computer that --native has changed
clean() {
    local i
    for ((i = 0; i < ${#restore[@]}; i += 2)); do echo "${restore[i + 1]}" >"${restore[i]}"; done
    [ -n "$pid" ] && kill "$pid" 2>/dev/null
    if [ -n "$keep" ]; then say "run folder kept: $run"; else rm -rf "$run"; fi
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
chmod 755 "$run"
mkdir "$run/out"
cp -p -- "${files[@]}" "$run/"
change() { # FILE VALUE: until the end
    restore+=("$1" "$(cat "$1")")
    echo "$2" >"$1"
}
if [ -n "$native" ]; then
    ended=0
    change /proc/sys/kernel/kptr_restrict 0
    change /proc/sys/kernel/perf_event_paranoid -1
    mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
    mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
    (cd "$run" && ulimit -l unlimited && export PTVM_OUT=$run/out "${vars[@]}" && timeout -k 5 "$limit" bash -e "./$(basename "${files[0]}")" "${args[@]}") || ended=$?
    [ -z "$out" ] || { mkdir -p "$out" && cp -a "$run/out/." "$out/"; }
    exit $ended
fi
cp "$here/guest-init.sh" "$run/init.sh"
{
    printf 'export PTVM_KERNEL=%q PTVM_SUITE=%q\n' "$kernel" "$suite"
    printf 'PTVM_SHARES=('
    [ ${#shares[@]} -eq 0 ] || printf '%q ' "${shares[@]}"
    printf ')\n'
    for v in "${vars[@]}"; do printf 'export %q=%q\n' "${v%%=*}" "${v#*=}"; done
} >"$run/env"
{
    printf 'command=(%q ' "./$(basename "${files[0]}")"
    [ ${#args[@]} -eq 0 ] || printf '%q ' "${args[@]}"
    printf ')\n'
} >"$run/command"

# The performance counters have to come up for PT's interrupt; the other flags are those that the emulation is not up to.
cpu=Skylake-Client,hle=off,rtm=off,pcid=off,invpcid=off,rdseed=off,x2apic=off,tsc-deadline=off,invtsc=on,pmu=on,intel-pt=on
cpu=$cpu,3dnowprefetch=off,xsavec=off,tsc-frequency=2400000000$cpuflags
words="console=ttyS0 panic=-1 tsc=reliable tsc_early_khz=2400000 random.trust_cpu=on no_timer_check ptvm.run=$run $append"
timeout -k 5 "$limit" "$qemu/qemu-system-x86_64" -accel tcg -M pc -smp "$smp" -m "$mem" -cpu "$cpu" -nodefaults -display none \
    -no-reboot -serial "file:$run/console" -serial stdio -L "$qemu/fw" -kernel "$kernel/vmlinuz" -initrd "$kernel/initramfs.gz" -append "$words" \
    -fsdev local,id=hr,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=hr,mount_tag=hostroot \
    -fsdev "local,id=rn,path=$run,security_model=none" -device virtio-9p-pci,fsdev=rn,mount_tag=run -device virtio-rng-pci \
    </dev/null 2>"$run/qemu" &
pid=$!
ended=0
wait $pid || ended=$?
pid=''

if [ -n "$out" ]; then
    mkdir -p "$out"
    cp -a "$run/out/." "$out/"
fi
[ -s "$run/status" ] && exit "$(cat "$run/status")"

tail -n 20 "$run/console" >&2 || true
cat "$run/qemu" >&2
case $ended in
124 | 137) PTVM_EXIT=124 die "$(basename "${files[0]}") did not end within $limit s (--timeout); above: what it printed, then the end of the console" ;;
esac
die "the guest ended without telling the status of $(basename "${files[0]}"); above: what it printed, then the end of the console"
