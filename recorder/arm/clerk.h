/* Work that takes long, such as writing a snapshot, in a thread of its own, while the loop goes on: one task
 * after the other, in the order in which they were given. */
#ifndef ST_RECORDER_ARM_CLERK_H
#define ST_RECORDER_ARM_CLERK_H

#include "base/error.h"

#include <stddef.h>

struct rec_clerk;

/* The head of what the clerk is given. It stays the caller's, and nobody else touches it until it is handed
 * back. */
struct rec_task {
    void (*work)(struct rec_task *task); /* in the clerk's thread */

    struct rec_task *next; /* the clerk's */
};

/* `done` is called in the loop's thread for each task that has been worked on. ST_EFAIL, ST_ENOMEM. */
int rec_clerk_open(int loop, int (*done)(void *ctx, struct rec_task *task, struct st_error *err), void *ctx,
                   struct rec_clerk **clerk, struct st_error *err);

void rec_clerk_give(struct rec_clerk *clerk, struct rec_task *task);

/* How many tasks were given and are not handed back yet. 0 for NULL. */
size_t rec_clerk_busy(const struct rec_clerk *clerk);

/* Waits for all of them, and hands each back. The first error of `done` is returned; the others are handed
 * back all the same. Nothing for NULL. */
int rec_clerk_finish(struct rec_clerk *clerk, struct st_error *err);

/* It must not be busy. NULL is allowed. */
void rec_clerk_close(struct rec_clerk *clerk);

#endif
