/* Which bucket of a histogram a value belongs to. Shared with BPF. */
#ifndef ST_TRIGGERS_BPF_BUCKET_H
#define ST_TRIGGERS_BPF_BUCKET_H

#include "triggers/bpf/config.h"

/* The power of two that `v` is not below; 0 for 0. The last bits by a list of the powers of 0 to 15, one hex
 * digit each: with a branch a bit the processor would guess wrong half of the time. */
static inline __attribute__((always_inline)) st_u32 log2_of(st_u64 v)
{
    st_u32 n = 0;

#ifdef __bpf__
#pragma unroll
#endif
    for (st_u32 step = 32; step >= 4; step /= 2)
        if (v >> step) {
            v >>= step;
            n += step;
        }
    return n + (0x3333333322221100ull >> v * 4 & 3);
}

/* Below HIST_BUCKETS. */
static inline __attribute__((always_inline)) st_u32 bucket_of(st_u64 took)
{
    st_u32 power = log2_of(took);
    st_u32 step = (power >= 3 ? took >> (power - 3) : took << (3 - power)) & (HIST_STEPS - 1);

    return power * HIST_STEPS + step;
}

#endif
