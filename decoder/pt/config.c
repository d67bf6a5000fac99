/* From how a trace was recorded to libipt's configuration. */
#include "decoder/pt/config.h"

#include "decoder/pt/errata.h"
#include "perfdata/format.h"

#include <stdlib.h>
#include <string.h>

/* Of IA32_RTIT_CTL (SDM, Intel PT, "IA32_RTIT_CTL MSR"), and of attr.config. */
static const uint64_t EVENT_EN = (uint64_t)1 << 31, DIS_TNT = (uint64_t)1 << 55;

void dec_pt_config_from_cpuid(struct dec_pt_config *config, const char *cpuid)
{
    static const char vendor[] = "GenuineIntel,";
    unsigned long value[3] = {0};
    if (!cpuid || strncmp(cpuid, vendor, sizeof(vendor) - 1) != 0)
        return;
    const char *at = cpuid + sizeof(vendor) - 1;
    for (int i = 0; i < 3; i++) {
        char *end;
        value[i] = strtoul(at, &end, 10);
        if (end == at || (i < 2 && *end != ','))
            return;
        at = end + 1;
        if (i == 2)
            break;
    }
    config->family = (uint16_t)value[0];
    config->model = (uint8_t)value[1];
    config->stepping = (uint8_t)value[2];
}

/* The bits of attr.config that a mask of IA32_RTIT_CTL selects, moved down. */
static uint64_t field(uint64_t config, uint64_t mask)
{
    return mask ? (config & mask) >> __builtin_ctzll(mask) : 0;
}

void dec_pt_config_from_perf(struct dec_pt_config *config, const uint64_t *priv, size_t npriv,
                             const struct perf_event_attr *attr, const char *cpuid)
{
    uint64_t word[PD_PT_PRIV_MAX] = {0};
    memcpy(word, priv, (npriv < PD_PT_PRIV_MAX ? npriv : PD_PT_PRIV_MAX) * sizeof(*priv));
    memset(config, 0, sizeof(*config));
    dec_pt_config_from_cpuid(config, cpuid);
    config->clock.shift = (uint16_t)word[PD_PT_TIME_SHIFT];
    config->clock.mult = word[PD_PT_TIME_MULT];
    config->clock.zero = word[PD_PT_TIME_ZERO];
    config->clock.known = word[PD_PT_TIME_MULT] != 0;
    config->nom_freq = (uint8_t)word[PD_PT_MAX_NONTURBO_RATIO];
    config->cpuid15_eax = (uint32_t)word[PD_PT_TSC_CTC_D];
    config->cpuid15_ebx = (uint32_t)word[PD_PT_TSC_CTC_N];
    uint64_t bits = attr ? attr->config : 0;
    config->mtc_freq = (uint8_t)field(bits, word[PD_PT_MTC_FREQ_BITS]);
    config->has_time = (bits & word[PD_PT_TSC_BIT]) != 0;
    /* The driver's format has these where the CPU has them. */
    config->event_trace = (bits & EVENT_EN) != 0;
    config->no_tnt = (bits & DIS_TNT) != 0;
    config->filtered = word[PD_PT_FILTER_STR_LEN] != 0;
}

void pt_configure(struct pt_config *to, const struct dec_pt_config *from, const uint8_t *bytes, size_t size)
{
    pt_config_init(to);
    to->begin = (uint8_t *)(uintptr_t)bytes;
    to->end = to->begin + size;
    to->mtc_freq = from->mtc_freq;
    to->nom_freq = from->nom_freq;
    to->cpuid_0x15_eax = from->cpuid15_eax;
    to->cpuid_0x15_ebx = from->cpuid15_ebx;
    if (!from->family)
        return;
    to->cpu.vendor = pcv_intel;
    to->cpu.family = from->family;
    to->cpu.model = from->model;
    to->cpu.stepping = from->stepping;
    pt_errata_of(from, &to->errata);
}
