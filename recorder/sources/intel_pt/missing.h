/* Why a machine has no intel_pt PMU: told by `doctor` and by `arm --source intel-pt`. */
#ifndef ST_RECORDER_SOURCES_INTEL_PT_MISSING_H
#define ST_RECORDER_SOURCES_INTEL_PT_MISSING_H

#include <stdbool.h>

struct pt_missing {
    char why[160]; /* "this is a virtual machine (a guest), and its processor shows no Intel PT" */

    const char *advice; /* what to do; static */
};

/* What of the processor decides, as /proc/cpuinfo tells it. */
struct pt_cpu {
    char vendor[32];

    bool guest; /* it says that a hypervisor is there */

    bool has_pt;
};

/* Reads the first processor of a file like /proc/cpuinfo. Where it cannot be read the vendor is "unknown". */
struct pt_cpu pt_cpu_read(const char *path);

/* The reason, for a machine whose kernel has no intel_pt PMU. */
struct pt_missing pt_why_missing(const struct pt_cpu *cpu);

#endif
