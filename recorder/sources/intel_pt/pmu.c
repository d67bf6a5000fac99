/* The intel_pt PMU: its description in sysfs, and a config. */
#include "recorder/sources/intel_pt/pmu.h"

#include <cpuid.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MTC_PERIOD = 3,  /* perf's: 3 MHz of the usual 24 MHz crystal */
    PSB_PERIOD = 3,  /* perf's: every 2^(11+3) bytes */
    PSB_LEAST = 11,  /* the value 0 stands for 2^11 bytes (SDM, IA32_RTIT_CTL.PSBFreq) */
    PSBS_A_RING = 64 /* at least so many */
};

/* The file's first line, without its end. */
static bool read_line(const char *folder, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    bool there;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "re");
    if (!f)
        return false;
    there = fgets(line, size, f) != NULL;
    fclose(f);
    if (there)
        line[strcspn(line, "\n")] = '\0';
    return there;
}

static uint64_t read_number(const char *folder, const char *name, const char *scan)
{
    unsigned long long n = 0;
    char line[64];

    if (!read_line(folder, name, line, sizeof(line)) || sscanf(line, scan, &n) != 1)
        return 0;
    return n;
}

/* "config:9" or "config:14-17" as a mask. */
static uint64_t read_mask(const char *folder, const char *setting)
{
    unsigned first, last;
    char name[64], line[64];
    int n;

    snprintf(name, sizeof(name), "format/%s", setting);
    if (!read_line(folder, name, line, sizeof(line)))
        return 0;
    n = sscanf(line, "config:%u-%u", &first, &last);
    if (n == 1)
        last = first;
    if (n < 1 || last < first || last > 63)
        return 0;
    return (~0ull >> (63 - last)) & (~0ull << first);
}

static void read_ratio(struct pt_pmu *pmu)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(0x15, &a, &b, &c, &d))
        return;
    pmu->tsc_ctc_n = b;
    pmu->tsc_ctc_d = a;
}

int pt_pmu_read(const char *folder, struct pt_pmu *pmu, struct st_error *err)
{
    struct pt_pmu p = {
        .type = (uint32_t)read_number(folder, "type", "%llu"),
        .pass = read_mask(folder, "pt"),
        .tsc = read_mask(folder, "tsc"),
        .branch = read_mask(folder, "branch"),
        .noretcomp = read_mask(folder, "noretcomp"),
        .cyc = read_mask(folder, "cyc"),
        .cyc_thresh = read_mask(folder, "cyc_thresh"),
        .mtc = read_mask(folder, "mtc"),
        .mtc_period = read_mask(folder, "mtc_period"),
        .psb_period = read_mask(folder, "psb_period"),
        .max_nonturbo_ratio = read_number(folder, "max_nonturbo_ratio", "%llu"),
    };

    if (access(folder, F_OK))
        return st_fail(err, ST_ECANNOT, "the kernel offers no intel_pt PMU (no %s)", folder);
    if (!p.type || !p.tsc)
        return st_fail(err, ST_ECANNOT, "the intel_pt PMU in %s lacks its type or its settings", folder);
    if (read_number(folder, "caps/mtc", "%llx"))
        p.mtc_periods = read_number(folder, "caps/mtc_periods", "%llx");
    if (read_number(folder, "caps/psb_cyc", "%llx")) {
        p.cyc_thresholds = read_number(folder, "caps/cycle_thresholds", "%llx");
        p.psb_periods = read_number(folder, "caps/psb_periods", "%llx");
    }
    read_ratio(&p);
    *pmu = p;
    return 0;
}

static uint64_t put(uint64_t mask, unsigned value)
{
    return mask ? ((uint64_t)value << __builtin_ctzll(mask)) & mask : 0;
}

/* The allowed value that is nearest to `wanted`; of two, the smaller. */
static unsigned nearest(uint64_t allowed, unsigned wanted)
{
    for (unsigned d = 0; d < 64; d++) {
        if (d <= wanted && allowed >> (wanted - d) & 1)
            return wanted - d;
        if (wanted + d < 64 && allowed >> (wanted + d) & 1)
            return wanted + d;
    }
    return 0;
}

static unsigned psb_period(size_t ring_bytes)
{
    unsigned period = PSB_PERIOD;

    while (period && (PSBS_A_RING << (PSB_LEAST + period)) > (long long)ring_bytes)
        period--;
    return period;
}

uint64_t pt_pmu_config(const struct pt_pmu *pmu, size_t ring_bytes)
{
    /* `pt` makes the driver take `branch` as it is; older ones have neither and always trace branches. */
    uint64_t config = pmu->tsc | (pmu->pass && pmu->branch ? pmu->pass | pmu->branch : 0);

    if (pmu->mtc_periods)
        config |= pmu->mtc | put(pmu->mtc_period, nearest(pmu->mtc_periods, MTC_PERIOD));
    if (pmu->cyc_thresholds)
        config |= pmu->cyc | put(pmu->cyc_thresh, nearest(pmu->cyc_thresholds, 0));
    if (pmu->psb_periods)
        config |= put(pmu->psb_period, nearest(pmu->psb_periods, psb_period(ring_bytes)));
    return config;
}
