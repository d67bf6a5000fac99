/* What the kernel tells about the target beside the trace: processes, threads, names, mappings, context
 * switches. */
#ifndef ST_RECORDER_SIDEBAND_SIDEBAND_H
#define ST_RECORDER_SIDEBAND_SIDEBAND_H

#include "base/error.h"
#include "base/target.h"
#include "recorder/perf/clock.h"
#include "recorder/perf/event_group.h"
#include "recorder/sideband/pid_set.h"
#include "recorder/sideband/record_store.h"
#include "triggers/select.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_sideband;

struct rec_sideband_config {
    const struct st_target *target; /* resolved */

    pid_t command; /* the child of ST_TARGET_COMMAND, else 0 */

    bool switches; /* context switches too */

    bool kernel; /* how the kernel's code changes too, where this user may see it */

    struct trg_select *select; /* not NULL: events are CPU-wide and have CLOCK_MONOTONIC; context
                                * switches are what it notes, of processes the target's are kept. Stays
                                * the caller's. */

    bool wake_at_once; /* on every state record: the source must hear of new threads */
};

/* Opens dummy events on every thread of the target (those it creates later are covered by inheritance), or
 * with config.select on the CPUs, and puts what is there already into the store. Live when it returns.
 * ST_ECANNOT, ST_EFAIL (the target ended); everything is then undone. clock and store stay the caller's and
 * must outlive it. */
int rec_sideband_open(const struct rec_sideband_config *config, struct rec_clock *clock,
                      struct rec_store *store, struct rec_sideband **sideband, struct st_error *err);

/* A process that came into the target, and that nobody in it made. */
struct rec_sideband_join {
    pid_t pid;

    uint64_t time; /* CLOCK_MONOTONIC ns: when it came */

    bool known; /* it has inherited the events of who forked it */

    bool refused; /* it cannot be attached to: that was told, of the first such one */
};

/* Attaches to the threads of those processes, sets `known` and `refused`, and puts what is there of the
 * others into the store. One that has ended meanwhile is no error. ST_EFAIL, ST_ENOMEM. */
int rec_sideband_join(struct rec_sideband *sideband, struct rec_sideband_join *list, size_t n,
                      struct st_error *err);

/* Whether the process is known to be of the target: it was there, joined, or was forked by such a one. To be
 * asked behind a drain; of a target that does not wait for others nothing is known. */
bool rec_sideband_knows(const struct rec_sideband *sideband, pid_t pid);

/* The processes of the target, as far as the kernel's records tell of those that were forked: empty without
 * config.select, but of a target that waits for others. Valid until the next drain. */
const rec_pid_set *rec_sideband_pids(const struct rec_sideband *sideband);

/* Calls fn for every thread that is born in the target from now on. */
typedef int rec_thread_fn(void *ctx, pid_t pid, pid_t tid, struct st_error *err);
void rec_sideband_on_thread(struct rec_sideband *sideband, rec_thread_fn *fn, void *ctx);

/* Moves what the kernel wrote into the store. */
int rec_sideband_drain(struct rec_sideband *sideband, struct st_error *err);

/* Puts marks of waits into the store, samples of the event `id` (rec_waits_tell), for a snapshot that is
 * about thread `tid`. Nothing without config.select. ST_ENOMEM. */
int rec_sideband_tell_waits(struct rec_sideband *sideband, uint64_t id, pid_t tid, struct st_error *err);

/* Drains by itself from now on, whenever a ring fills. */
int rec_sideband_watch(struct rec_sideband *sideband, int loop, struct st_error *err);

/* The groups of events, for the snapshot: the state's, the context switches' and the kernel code's (no events
 * where there are none). */
enum rec_sideband_group {
    REC_SIDEBAND_STATE,
    REC_SIDEBAND_SWITCHES,
    REC_SIDEBAND_KERNEL,
    REC_SIDEBAND_GROUPS
};
const struct rec_group *rec_sideband_group(const struct rec_sideband *sideband,
                                           enum rec_sideband_group which);

/* NULL is allowed. `loop` is the one of rec_sideband_watch, or -1. */
void rec_sideband_close(struct rec_sideband *sideband, int loop);

#endif
