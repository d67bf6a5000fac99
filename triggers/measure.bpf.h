/* The histogram of what was measured. */
#ifndef ST_TRIGGERS_MEASURE_BPF_H
#define ST_TRIGGERS_MEASURE_BPF_H

#include "triggers/config.h"
#include "triggers/kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct hist);
} hist SEC(".maps");

static __always_inline st_u32 log2_of(st_u64 v)
{
    st_u32 n = 0;

#pragma unroll
    for (st_u32 step = 32; step; step /= 2)
        if (v >> step) {
            v >>= step;
            n += step;
        }
    return n;
}

static __always_inline void measure(st_u64 took)
{
    st_u32 zero = 0, power, step;
    struct hist *h = bpf_map_lookup_elem(&hist, &zero);

    if (!h)
        return;
    power = log2_of(took);
    step = (power >= 3 ? took >> (power - 3) : took << (3 - power)) & (HIST_STEPS - 1);
    h->bucket[(power * HIST_STEPS + step) & (HIST_BUCKETS - 1)]++;
    h->sum += took;
    if (took > h->worst)
        h->worst = took;
}

#endif
