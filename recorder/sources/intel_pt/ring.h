/* An AUX ring of the intel_pt PMU in overwrite mode: the kernel writes round and round and wakes nobody. What
 * stands here on its head and on DISABLE was measured (tests/ptvm/README.md). */
#ifndef ST_RECORDER_SOURCES_INTEL_PT_RING_H
#define ST_RECORDER_SOURCES_INTEL_PT_RING_H

#include "base/error.h"
#include "recorder/sources/source.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pt_ring {
    struct perf_event_mmap_page *page; /* NULL: not mapped */

    const uint8_t *aux; /* read-only, which makes it overwritten */

    size_t bytes; /* of it: a power of two, at least a page */

    pid_t pid, tid; /* the thread it is of; -1: a ring of a CPU */

    int cpu; /* -1: a ring of a thread */

    uint64_t since; /* perf clock: when it began to record */

    bool in_kernel; /* the last freeze found it paused */

    uint64_t stopped; /* perf clock: when the last freeze had stopped it */
};

/* What pt_event_open and pt_ring_map found, besides errors. */
enum pt_refusal {
    PT_DONE,
    PT_GONE,      /* the thread has ended */
    PT_BUSY,      /* another event of the PMU records the thread or CPU: it can be used once at a time */
    PT_TOO_LARGE, /* the limit of locked memory, or the machine's memory, refuses the ring's size */
};

/* Opens an event for thread `tid` (-1: whoever runs) on `cpu` (-1: wherever it runs). Returns its descriptor
 * in *fd with PT_DONE, PT_GONE, PT_BUSY, or a negative code (ST_ECANNOT: a privilege lacks). */
int pt_event_open(const struct perf_event_attr *attr, pid_t tid, int cpu, int *fd, struct st_error *err);

/* Maps ring->bytes for the event fd. PT_DONE, PT_TOO_LARGE (err is filled with what to do), or a negative
 * code. The descriptor stays the caller's. */
int pt_ring_map(struct pt_ring *ring, int fd, struct st_error *err);

/* Where in the ring it writes now. */
uint64_t pt_ring_place(const struct pt_ring *ring);

/* Where the ring's bytes are, oldest first, while its events are disabled. A ring that was never full has
 * zeros behind its head, which are left out. */
void pt_ring_parts(const struct pt_ring *ring, struct rec_ring *to);

/* The kernel's conversion of the TSC to the perf clock. False: it has none. */
bool pt_ring_clock(const struct pt_ring *ring, uint64_t *mult, uint64_t *shift, uint64_t *zero);

/* Safe on a ring that is not mapped. */
void pt_ring_unmap(struct pt_ring *ring);

#endif
