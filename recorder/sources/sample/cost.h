/* What recording adds to a context switch. */
#ifndef ST_RECORDER_SOURCES_SAMPLE_COST_H
#define ST_RECORDER_SOURCES_SAMPLE_COST_H

#include <linux/perf_event.h>
#include <stdint.h>

struct smp_cost {
    uint64_t timer; /* ns that an event which samples takes as its thread leaves a CPU and comes back: its
                     * timer (or counter) is stopped and set anew, which a hypervisor may have to do */

    uint64_t slow_timer; /* the same at the lower rate: mostly the timer is then not the CPU's next one */

    uint64_t mark; /* ns of a sample at a context switch or a wake-up */
};

/* Measures them on this CPU with a thread beside the caller's: two that wait for each other in turns, with
 * and without the events, which takes some 30 ms. `sample` is the event that samples, as often as its
 * attribute says; `slow` the lower rate, in samples a second; `mark` the event at context switches. What
 * cannot be measured (no such event for this user, or a measurement that other programs disturbed) gets a
 * usual value. */
struct smp_cost smp_cost_measure(const struct perf_event_attr *sample, unsigned slow,
                                 const struct perf_event_attr *mark);

#endif
