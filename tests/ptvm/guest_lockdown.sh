# guest_lockdown.sh SOURCE BUILD: a kernel that was booted with lockdown=integrity or lockdown=confidentiality. The first takes nothing away. With
# the second no BPF program may read the kernel's memory: arm refuses triggers, in doctor's words, and sampling works.
mount -t securityfs securityfs /sys/kernel/security
level=$(sed -n 's/.*\[\(.*\)\].*/\1/p' /sys/kernel/security/lockdown)
status=0
bash guest_kinds.sh "$1" "$2" sample offcpu syscall call.kernel || status=1
is() { # CELL RESULT WORDS
    grep -qP "^$1\t$2\t.*$3" "$PTVM_OUT/cells" || { echo "FAILED: lockdown=$level: $1 is not $2 ($3)"; status=1; }
}
says() { "$2/stalltrap" doctor | grep -E "$3" || { echo "FAILED: lockdown=$level: doctor does not say '$3'"; status=1; }; }
is sample works ''
says "$@" "^- +kernel lockdown +$level"
case $level in
integrity)
    for cell in offcpu syscall call.kernel; do is $cell works ''; done
    says "$@" '^yes +triggers '
    ;;
confidentiality)
    for cell in offcpu syscall call.kernel; do is $cell refused 'reads of kernel memory by BPF programs'; done
    says "$@" '^no +BPF: reads of kernel memory'
    says "$@" 'boot with lockdown=integrity'
    ;;
*) echo "FAILED: the kernel is not locked down: '$level'"; status=1 ;;
esac
exit $status
