/* The threads of a target. */
#include "base/target_threads.h"

#include <stdlib.h>

int rec_each_thread_of(pid_t pid, rec_take_thread_fn *fn, void *ctx, unsigned *rounds, struct st_error *err)
{
    unsigned unasked;
    bool fresh = true;
    int rc = 0;

    if (!rounds)
        rounds = &unasked;

    for (*rounds = 0; (rc == 0 || rc == 1) && fresh; ++*rounds) {
        pid_t *tids = NULL;
        int n = st_target_threads(pid, &tids, err);

        fresh = false;
        for (int i = 0; (rc == 0 || rc == 1) && i < n; i++) {
            rc = fn(ctx, pid, tids[i], err);
            fresh = fresh || rc == 1;
        }
        free(tids);
        if (n < 0)
            return n;
    }
    return rc == 1 ? 0 : rc;
}

int rec_each_thread(const struct st_target *t, pid_t command, rec_take_thread_fn *fn, void *ctx,
                    unsigned *rounds, struct st_error *err)
{
    int rc = 0;

    if (command)
        rc = rec_each_thread_of(command, fn, ctx, rounds, err);
    for (size_t i = 0; !rc && i < t->npids; i++)
        rc = rec_each_thread_of(t->pids[i], fn, ctx, rounds, err);
    return rc;
}

size_t st_count_threads(const struct st_target *target)
{
    size_t threads = 0;

    for (size_t i = 0; i < target->npids; i++) {
        pid_t *tids = NULL;
        int n = st_target_threads(target->pids[i], &tids, NULL);

        threads += n > 0 ? (size_t)n : 0;
        free(tids);
    }
    return threads;
}
