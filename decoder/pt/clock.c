/* TSC <-> perf clock, with the products kept below 64 bits by splitting at the shift or the multiplier. */
#include "decoder/pt/clock.h"

uint64_t dec_clock_ns(const struct dec_clock *clock, uint64_t tsc)
{
    if (!clock->known)
        return tsc;
    unsigned shift = clock->shift < 64 ? clock->shift : 63;
    uint64_t whole = tsc >> shift;
    uint64_t rest = tsc & (((uint64_t)1 << shift) - 1);
    return clock->zero + whole * clock->mult + (uint64_t)(((unsigned __int128)rest * clock->mult) >> shift);
}

uint64_t dec_clock_tsc(const struct dec_clock *clock, uint64_t ns)
{
    if (!clock->known || ns == 0 || ns == UINT64_MAX || clock->mult == 0)
        return ns;
    unsigned shift = clock->shift < 64 ? clock->shift : 63;
    uint64_t since = ns - clock->zero;
    uint64_t whole = since / clock->mult;
    uint64_t rest = since % clock->mult;
    return (whole << shift) + (uint64_t)(((unsigned __int128)rest << shift) / clock->mult);
}
