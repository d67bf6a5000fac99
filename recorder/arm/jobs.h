/* What happens to a written snapshot: it is decoded, and then the --then actions run, one after the other,
 * while the recording goes on. */
#ifndef ST_RECORDER_ARM_JOBS_H
#define ST_RECORDER_ARM_JOBS_H

#include "base/error.h"
#include "recorder/arm/action.h"
#include "recorder/snapshot/written.h"

#include <stdbool.h>
#include <stddef.h>

struct rec_jobs;

struct rec_jobs_config {
    int folder; /* that snapshots and databases are in, open; stays the caller's, until rec_jobs_close */

    bool decode;

    const struct rec_action *actions; /* without REC_ACTION_SNAPSHOT; run in order until one fails */

    size_t nactions;
};

/* `config->actions` must outlive it. ST_ENOMEM. */
int rec_jobs_open(int loop, const struct rec_jobs_config *config, struct rec_jobs **jobs,
                  struct st_error *err);

enum rec_job_flag {
    REC_JOB_ACTIONS = 1, /* they run behind the decoding */
    REC_JOB_LATER = 2,   /* it is left to the user to decode it, which is said */
    REC_JOB_BESIDE = 4,  /* the recording goes on while it is decoded */
    REC_JOB_AGAIN =
        8, /* it was queued before, and its file has changed: the database is made again, if it is there */
};

/* Queues the snapshot `data`, which is the file `file`, for `db` (paths as their user calls them, copied: the
 * last parts are names in the jobs' folder). What has the name by then and is another file is not decoded.
 * `reason` is STALLTRAP_REASON of the actions; `flags`
 * are enum rec_job_flag. ST_ENOMEM. */
int rec_jobs_add(struct rec_jobs *jobs, const char *data, const char *db, const struct rec_written *file,
                 const char *reason, unsigned flags, struct st_error *err);

/* The recording has ended: nobody is there any more whom decoding could disturb. */
void rec_jobs_hurry(struct rec_jobs *jobs);

/* How many snapshots are queued behind the one that is worked on. */
size_t rec_jobs_waiting(const struct rec_jobs *jobs);

/* Ends what runs, and tells of each snapshot that has no database yet. Nothing is queued then. */
void rec_jobs_abandon(struct rec_jobs *jobs);

/* Begins with what is queued, unless it is under way already. */
int rec_jobs_go(struct rec_jobs *jobs, struct st_error *err);

/* Whether anything is queued or under way. */
bool rec_jobs_busy(const struct rec_jobs *jobs);

/* Ends what runs, forgets what waits, frees. NULL is allowed. */
void rec_jobs_close(struct rec_jobs *jobs);

#endif
