/* Work in a thread of its own. */
#include "recorder/arm/clerk.h"
#include "base/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct queue {
    struct rec_task *first, **end;
};

struct rec_clerk {
    int loop;

    struct rec_watch ready; /* an eventfd: some of `worked` is to be handed back */

    int (*done)(void *ctx, struct rec_task *task, struct st_error *err);

    void *ctx;

    pthread_t thread;

    size_t busy; /* the loop's thread alone knows it */

    pthread_mutex_t lock; /* of what follows */

    pthread_cond_t given, returned;

    struct queue waiting, worked;

    bool end;
};

static void put(struct queue *q, struct rec_task *task)
{
    task->next = NULL;
    *q->end = task;
    q->end = &task->next;
}

static struct rec_task *take(struct queue *q)
{
    struct rec_task *task = q->first;

    if (!task)
        return NULL;
    q->first = task->next;
    if (!q->first)
        q->end = &q->first;
    return task;
}

/* With the lock held, as it is again when it returns. */
static void work_on(struct rec_clerk *c, struct rec_task *task)
{
    uint64_t one = 1;
    ssize_t told;

    pthread_mutex_unlock(&c->lock);
    task->work(task);
    pthread_mutex_lock(&c->lock);
    put(&c->worked, task);
    pthread_cond_signal(&c->returned);
    told = write(c->ready.fd, &one, sizeof(one)); /* fails only when 2^64 - 2 of them are unread */
    (void)told;
}

static void *run(void *arg)
{
    struct rec_clerk *c = arg;
    struct rec_task *task;

    pthread_mutex_lock(&c->lock);
    while (!c->end) {
        task = take(&c->waiting);
        if (task)
            work_on(c, task);
        else
            pthread_cond_wait(&c->given, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Signals are for the loop. */
static int start(struct rec_clerk *c)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&c->thread, NULL, run, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* Hands back what has been worked on; `wait`: once there is some. */
static int hand_back(struct rec_clerk *c, bool wait, struct st_error *err)
{
    struct rec_task *task;

    pthread_mutex_lock(&c->lock);
    while (!(task = take(&c->worked)) && wait)
        pthread_cond_wait(&c->returned, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (!task)
        return 0;
    c->busy--;
    return c->done(c->ctx, task, err);
}

static int on_ready(void *ctx, struct st_error *err)
{
    struct rec_clerk *c = ctx;
    uint64_t n;
    int rc = 0;

    if (read(c->ready.fd, &n, sizeof(n)) != sizeof(n))
        return 0;
    while (!rc && n--)
        rc = hand_back(c, false, err);
    return rc;
}

int rec_clerk_open(int loop, int (*done)(void *ctx, struct rec_task *task, struct st_error *err), void *ctx,
                   struct rec_clerk **clerk, struct st_error *err)
{
    struct rec_clerk *c = calloc(1, sizeof(*c));
    int rc;

    if (!c)
        return st_nomem(err, "the thread that writes snapshots");
    c->loop = loop;
    c->done = done;
    c->ctx = ctx;
    c->waiting.end = &c->waiting.first;
    c->worked.end = &c->worked.first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->given, NULL);
    pthread_cond_init(&c->returned, NULL);
    c->ready = (struct rec_watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_ready, .ctx = c};
    rc = c->ready.fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot make an eventfd") : 0;
    if (!rc)
        rc = rec_loop_add(loop, &c->ready, err);
    if (!rc && (errno = start(c)))
        rc = st_fail_errno(err, ST_EFAIL, "cannot start the thread that writes snapshots");
    if (!rc) {
        *clerk = c;
        return 0;
    }
    if (c->ready.fd >= 0) {
        rec_loop_remove(loop, &c->ready);
        close(c->ready.fd);
    }
    free(c);
    return rc;
}

void rec_clerk_give(struct rec_clerk *c, struct rec_task *task)
{
    c->busy++;
    pthread_mutex_lock(&c->lock);
    put(&c->waiting, task);
    pthread_cond_signal(&c->given);
    pthread_mutex_unlock(&c->lock);
}

size_t rec_clerk_busy(const struct rec_clerk *c)
{
    return c ? c->busy : 0;
}

int rec_clerk_finish(struct rec_clerk *c, struct st_error *err)
{
    int first = 0;

    while (rec_clerk_busy(c)) {
        int rc = hand_back(c, true, first ? NULL : err);

        first = first ? first : rc;
    }
    return first;
}

void rec_clerk_close(struct rec_clerk *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->end = true;
    pthread_cond_signal(&c->given);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    rec_loop_remove(c->loop, &c->ready);
    close(c->ready.fd);
    pthread_cond_destroy(&c->given);
    pthread_cond_destroy(&c->returned);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
