# guest_arm_kernel.sh SOURCE BUILD: `arm --source intel-pt` with the kernel's code. File: arm-lib.sh.
. ./arm-lib.sh "$@"
for rings in cpu thread; do
    arm_nest 100 kernel-$rings --rings $rings
    if [ $rings = thread ]; then
        same_calls kernel-$rings
    else
        outside kernel-$rings.1.data cpus
    fi
    nest_calls kernel-$rings 100
    no_gaps kernel-$rings
done
