/* What recording may cost a target that switches often: 1 % of a CPU for the samples (rate.c), and as much
 * again for what each context switch and wake-up adds. Beyond that, fewer of them are sampled. */
#ifndef ST_RECORDER_SOURCES_SAMPLE_BUDGET_H
#define ST_RECORDER_SOURCES_SAMPLE_BUDGET_H

#include "recorder/sources/sample/cost.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SMP_SLOW_RATE = 99, /* samples a second of a thread whose switches make samples dear */

    SMP_TIMER_BUDGET = 10 * 1000000, /* ns a second of a thread for the timer of its samples, */

    SMP_MARK_BUDGET =
        10 * 1000000, /* and for samples at its switches; of a CPU for those at wake-ups by it */

    SMP_LOOK_NS = 1000 * 1000 * 1000, /* between two looks at how often they come */
};

/* Who has marks: a thread's context switches, or a CPU's wake-ups. */
struct smp_pace {
    uint64_t counted; /* so many there were when it was looked at last */

    uint64_t rate; /* of them a second, since the look before */

    unsigned every; /* one in so many is sampled; 0: not looked at yet, which is as 1 */
};

/* Chooses `every` of each, so that none has more than `most` samples a second, and all together no more than
 * `total`: those that have few keep them all. What was chosen before goes down only where half of it would
 * do. */
void smp_budget_share(struct smp_pace *const *paces, size_t n, uint64_t most, uint64_t total);

/* Whether the timers of a thread's samples take too much at so many context switches a second, and would take
 * less than half as much at SMP_SLOW_RATE; one that is `slow` stays so above half of the budget. */
bool smp_budget_is_slow(const struct smp_cost *cost, uint64_t switches, bool slow);

#endif
