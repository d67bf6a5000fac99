/* One kind of perf event on many threads and CPUs, its records in one ring a CPU. */
#ifndef ST_RECORDER_PERF_EVENT_GROUP_H
#define ST_RECORDER_PERF_EVENT_GROUP_H

#include "base/error.h"
#include "base/loop.h"
#include "base/vec.h"
#include "recorder/perf/cpus.h"
#include "recorder/perf/ring.h"

#include <stdint.h>
#include <sys/types.h>

struct rec_group_event {
    int fd;

    pid_t tid; /* -1: whoever is on the CPU */

    uint64_t id;
};

/* The ring of a CPU belongs to an event on the recorder itself, which writes nothing into it: unlike the
 * threads of the target that one does not end, so that it can be polled and the ring lives. */
struct rec_group_ring {
    int cpu;

    int anchor;

    struct rec_perf_ring ring;

    struct rec_watch watch;
};

struct rec_group {
    struct perf_event_attr attr;

    ST_VEC(struct rec_group_event) events;

    ST_VEC(uint64_t) past; /* ids of events that were closed, whose records may still be kept */

    ST_VEC(struct rec_group_ring) rings;
};

/* Maps a ring of (at most) `bytes` on each CPU; it wakes the reader when `wake` bytes are in it. `attr`
 * (copied) is what rec_group_add opens. On error nothing is left open. */
int rec_group_open(struct rec_group *group, const struct perf_event_attr *attr, const rec_cpu_list *cpus,
                   size_t bytes, size_t wake, struct st_error *err);

/* Opens the event on thread `tid` (-1: any) on every CPU; live when it returns. A thread that has ended is no
 * error. `what` names it for messages. */
int rec_group_add(struct rec_group *group, pid_t tid, const char *what, struct st_error *err);

/* Closes the events of a thread again. */
void rec_group_remove(struct rec_group *group, pid_t tid);

/* Closes those of threads that have ended, and whose children have; their ids are kept. */
void rec_group_drop_ended(struct rec_group *group);

int rec_group_drain(struct rec_group *group, rec_perf_record_fn *fn, void *ctx, struct st_error *err);

/* `ready` is called whenever a ring asks to be drained. */
int rec_group_watch(struct rec_group *group, int loop, int (*ready)(void *ctx, struct st_error *err),
                    void *ctx, struct st_error *err);

/* Safe on a zeroed or closed group. */
void rec_group_close(struct rec_group *group, int loop);

#endif
