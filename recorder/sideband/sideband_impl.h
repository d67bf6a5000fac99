/* What the files of the side-band share. */
#ifndef ST_RECORDER_SIDEBAND_SIDEBAND_IMPL_H
#define ST_RECORDER_SIDEBAND_SIDEBAND_IMPL_H

#include "base/confined.h"
#include "base/vec.h"
#include "recorder/sideband/pid_set.h"
#include "recorder/sideband/sideband.h"
#include "recorder/sideband/strangers.h"
#include "recorder/sideband/waits.h"

/* A thread that a FORK record told of: it inherited the events. */
struct born {
    pid_t pid, tid;
};

struct rec_sideband {
    struct rec_sideband_config config;

    struct rec_clock *clock;

    struct rec_store *store;

    struct rec_group groups[REC_SIDEBAND_GROUPS];

    struct rec_waits *waits; /* with config.select */

    rec_thread_fn *on_thread;

    void *on_thread_ctx;

    ST_VEC(pid_t) attached; /* threads with events of their own */

    ST_VEC(struct born) born; /* while attaching */

    bool attaching;

    rec_pid_set pids; /* of the target; without config.select only of one that waits for others, to know who
                       * has inherited the events */

    struct rec_strangers strangers; /* with config.select: what was not of the target at the last drain */

    rec_pid_set joining; /* with config.select, while they join */

    size_t swept; /* events that there were when those of ended threads were last closed */

    bool told_refused;
};

/* While the threads of processes are attached to. */
struct sideband_walk {
    struct rec_sideband *sb;

    pid_t pid; /* whose threads were listed last */

    unsigned rounds, drained; /* listings of it, and until which one the FORK records were read */
};

/* Attaches to a thread unless it has inherited the events: a rec_take_thread_fn, `ctx` is a struct
 * sideband_walk
 * *. */
int sideband_attach_thread(void *ctx, pid_t pid, pid_t tid, struct st_error *err);

/* Closes what threads have twice, once those that were to be attached to are. */
int sideband_drop_doubles(struct rec_sideband *sb, struct st_error *err);

/* Describes the processes that were born meanwhile, and forgets them. */
int sideband_describe_born(struct rec_sideband *sb, struct st_confined *child, uint64_t now,
                           struct st_error *err);

/* The event that made-up records claim to come from. */
uint64_t sideband_state_id(const struct rec_sideband *sb);

#endif
