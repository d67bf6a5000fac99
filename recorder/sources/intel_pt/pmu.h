/* The intel_pt PMU as the kernel describes it in sysfs (Linux, arch/x86/events/intel/pt.c), and the config of
 * an event of it. */
#ifndef ST_RECORDER_SOURCES_INTEL_PT_PMU_H
#define ST_RECORDER_SOURCES_INTEL_PT_PMU_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define PT_PMU_FOLDER "/sys/bus/event_source/devices/intel_pt"

struct pt_pmu {
    uint32_t type; /* perf_event_attr.type */

    /* Masks within perf_event_attr.config, from the format files; 0: this PMU has no such setting. */
    uint64_t pass, tsc, branch, noretcomp;

    uint64_t cyc, cyc_thresh, mtc, mtc_period, psb_period;

    /* Which values a setting may take: bit N for the value N. 0: the processor cannot be set. */
    uint64_t cyc_thresholds, mtc_periods, psb_periods;

    uint64_t max_nonturbo_ratio;

    uint32_t tsc_ctc_n, tsc_ctc_d; /* TSC ticks to those of the crystal clock (CPUID 0x15 EBX, EAX) */
};

/* Reads the PMU's description from its folder (PT_PMU_FOLDER). ST_ECANNOT: there is none, or not all that is
 * needed of it; *pmu is then untouched. */
int pt_pmu_read(const char *folder, struct pt_pmu *pmu, struct st_error *err);

/* A config for a ring of so many bytes: branches, and the finest time that the processor tells: TSC, MTC, and
 * CYC with each packet; the period of PSB fits the ring, as trace from before its first PSB is lost. */
uint64_t pt_pmu_config(const struct pt_pmu *pmu, size_t ring_bytes);

#endif
