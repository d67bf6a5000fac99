/* How many marks each may have. */
#include "recorder/sources/sample/budget.h"

static uint64_t kept(const struct smp_pace *p, uint64_t most)
{
    return p->rate < most ? p->rate : most;
}

static uint64_t sum(struct smp_pace *const *paces, size_t n, uint64_t most)
{
    uint64_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += kept(paces[i], most);
    return all;
}

/* The highest bound on each at which all together stay within `total`. */
static uint64_t bound_of(struct smp_pace *const *paces, size_t n, uint64_t most, uint64_t total)
{
    uint64_t low = 1, high = most;

    while (low < high) {
        uint64_t middle = high - (high - low) / 2;

        if (sum(paces, n, middle) <= total)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void smp_budget_share(struct smp_pace *const *paces, size_t n, uint64_t most, uint64_t total)
{
    uint64_t bound = bound_of(paces, n, most ? most : 1, total);

    for (size_t i = 0; i < n; i++) {
        struct smp_pace *p = paces[i];
        uint64_t every = p->rate <= bound ? 1 : (p->rate + bound - 1) / bound;

        if (every > p->every || every <= p->every / 2)
            p->every = every < UINT32_MAX ? (unsigned)every : UINT32_MAX;
    }
}

bool smp_budget_is_slow(const struct smp_cost *cost, uint64_t switches, bool slow)
{
    uint64_t most = slow ? SMP_TIMER_BUDGET / 2 : SMP_TIMER_BUDGET;

    return cost->slow_timer < cost->timer / 2 && switches > most / cost->timer;
}
