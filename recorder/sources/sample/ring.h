/* A ring of records that the kernel overwrites: with attr.write_backward it writes towards lower addresses,
 * so that data_head is where the newest record begins, and the others follow it whole, back to the one that
 * is being overwritten (Linux, kernel/events/ring_buffer.c; tools/perf/util/mmap.c, overwrite_rb_find_range).
 * A mapping that cannot be written is what makes the ring one that is overwritten. */
#ifndef ST_RECORDER_SOURCES_SAMPLE_RING_H
#define ST_RECORDER_SOURCES_SAMPLE_RING_H

#include "base/error.h"
#include "recorder/sources/sample/budget.h"
#include "recorder/sources/source.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct smp_ring {
    const struct perf_event_mmap_page *page; /* NULL: not mapped */

    size_t bytes; /* of records: a power of two, at least a page */

    int fd; /* of the event that it was mapped from; not owned */

    pid_t pid, tid; /* the thread it is of; -1: a ring of a CPU */

    int cpu; /* -1: a ring of a thread */

    uint64_t since; /* perf clock: when it began to record */

    uint64_t marked; /* bytes ever written, when it was marked */

    uint64_t stopped; /* perf clock: when the last freeze had stopped it */

    struct smp_pace pace; /* of the context switches in it */

    bool slow; /* its samples are taken at SMP_SLOW_RATE */
};

/* Maps ring->bytes for ring->fd. 0, or ST_ECANNOT (a limit, or no memory; nothing is mapped), ST_EFAIL. */
int smp_ring_map(struct smp_ring *ring, struct st_error *err);

/* Makes the kernel drop what is written into it (on), or take it again. It counts what it drops, and says so
 * by a PERF_RECORD_LOST afterwards. */
int smp_ring_pause(const struct smp_ring *ring, bool on, struct st_error *err);

/* Notes how far it is. */
void smp_ring_mark(struct smp_ring *ring);

/* Whether what was written since it was marked overwrote a quarter of it at most. */
bool smp_ring_has_room(const struct smp_ring *ring);

/* How many bytes were ever written into it. */
uint64_t smp_ring_written(const struct smp_ring *ring);

/* Where the records of a paused ring are, the newest first. */
void smp_ring_parts(const struct smp_ring *ring, struct rec_ring *to);

/* Safe on a ring that is not mapped. */
void smp_ring_unmap(struct smp_ring *ring);

#endif
