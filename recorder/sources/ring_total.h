/* What the rings of a source may take together (--ring-total), and whose goes where that is not enough: that
 * of the thread which has been idle for longest. What is gone is told, so that it becomes a gap. */
#ifndef ST_RECORDER_SOURCES_RING_TOTAL_H
#define ST_RECORDER_SOURCES_RING_TOTAL_H

#include "base/error.h"
#include "base/target.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    REC_RING_SHARE = 8,   /* by default, one part in so many of the machine's memory */
    REC_MOST_GONE = 4096, /* threads without a ring that are told of: the newest */
};

/* A ring of a thread. */
struct rec_ring_use {
    pid_t pid, tid;

    size_t bytes;

    uint64_t place; /* how far it was written, when it was looked at last */

    uint64_t active; /* ns: when it was first seen there */
};

/* A thread without a ring. perf clock ns. */
struct rec_ring_gone {
    pid_t pid, tid;

    uint64_t since; /* its ring had recorded since then; 0: it never had one */

    uint64_t until; /* when the ring went, or was refused */
};

struct rec_ring_total {
    uint64_t most; /* bytes */

    bool asked; /* by the user */

    ST_VEC(struct rec_ring_use) uses; /* in the order of the source's rings of threads */

    ST_VEC(struct rec_ring_gone) gone;

    uint64_t ngone; /* in all */

    bool told; /* that a ring went */
};

/* `asked` 0: the default. */
void rec_ring_total_open(struct rec_ring_total *total, uint64_t asked);

/* The size of each of n rings that together take at most `total`: `bytes` or, halved as often as it takes,
 * less; but at least `least`. */
size_t rec_ring_fit(size_t bytes, size_t least, size_t n, uint64_t total);

/* Whether one more ring fits. The first one always does. */
bool rec_ring_has_room(const struct rec_ring_total *total, size_t bytes);

/* A ring of a thread was made, at the end of the source's; or the one of index i is no more. -1: no memory.
 * Times are those of one clock, which is the caller's choice. */
int rec_ring_made(struct rec_ring_total *total, pid_t pid, pid_t tid, size_t bytes, uint64_t now);
void rec_ring_dropped(struct rec_ring_total *total, size_t i);

/* The ring of index i is written up to `place` now. */
void rec_ring_look(struct rec_ring_total *total, size_t i, uint64_t place, uint64_t now);

/* The ring that has been standing still for longest, and for a second at least; of several the one that was
 * made first. uses.n: there is none. */
size_t rec_ring_idlest(const struct rec_ring_total *total, uint64_t now);

/* Whether that thread is known to have none. */
bool rec_ring_is_gone(const struct rec_ring_total *total, pid_t pid, pid_t tid);

/* A thread has no ring (any more). The user is told once. ST_ENOMEM. */
int rec_ring_tell_gone(struct rec_ring_total *total, const struct rec_ring_gone *gone, struct st_error *err);

/* " (3 GiB in all at most, 7 threads have none)", as a part of the armed line. */
void rec_ring_total_describe(const struct rec_ring_total *total, char *text, size_t size);

/* Forgets all rings and who has none. */
void rec_ring_total_clear(struct rec_ring_total *total);

/* Says, as the recording ends, how many rings went. */
void rec_ring_total_end(const struct rec_ring_total *total);

void rec_ring_total_close(struct rec_ring_total *total);

/* A thread, and how often it ran. */
struct rec_ring_wish {
    pid_t pid, tid;

    uint64_t ns, times; /* on a CPU in all, and how often it got one */

    bool ran; /* within a tenth of a second */
};

typedef ST_VEC(struct rec_ring_wish) rec_ring_wishes;

/* Before recording nobody knows since when a thread is idle. Lists the target's threads, those first that ran
 * within a tenth of a second, and of the others those that ran more often. Takes that time. ST_ENOMEM. */
int rec_ring_wish(const struct st_target *target, rec_ring_wishes *list, struct st_error *err);

/* Puts them in that order. */
void rec_ring_wish_sort(rec_ring_wishes *list);

#endif
