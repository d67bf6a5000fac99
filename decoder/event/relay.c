/* A ring of batches between two threads. */
#include "decoder/event/relay.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 16, ROOM = 4096 };

struct batch {
    struct dec_stream_info info;

    struct dec_event *events; /* ROOM of them */

    size_t n;

    char *detail; /* NULL: none */
};

struct relay {
    const struct dec_relay_options *options;

    struct batch batches[BATCHES];

    size_t put, taken; /* counts: the batch of number i stands at i % BATCHES */

    bool ended; /* nothing more is produced */

    bool stopped; /* nothing more is taken */

    int rc; /* of produce */

    struct st_error err;

    pthread_mutex_t lock;

    pthread_cond_t changed;
};

/* The next free batch; NULL: nobody takes it. */
static struct batch *wait_for_room(struct relay *r)
{
    struct batch *b = NULL;

    pthread_mutex_lock(&r->lock);
    while (!r->stopped && r->put - r->taken == BATCHES)
        pthread_cond_wait(&r->changed, &r->lock);
    if (!r->stopped)
        b = &r->batches[r->put % BATCHES];
    pthread_mutex_unlock(&r->lock);
    return b;
}

static void tell(struct relay *r, size_t *count, bool *flag)
{
    pthread_mutex_lock(&r->lock);
    if (count)
        ++*count;
    if (flag)
        *flag = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* A jump that was not taken leaves only its counts, to the event behind it. */
static size_t copy(struct dec_event *to, const struct dec_event *events, size_t n, bool whole)
{
    uint64_t counts = 0;
    size_t kept = 0;

    if (whole) {
        memcpy(to, events, n * sizeof(*to));
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        const struct dec_event *e = &events[i];

        if (e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN) && i && i + 1 < n &&
            dec_add_counts(&counts, e->arg))
            continue;
        to[kept++] = *e;
        if (counts && dec_has_counts(e->kind) && dec_add_counts(&to[kept - 1].arg, counts))
            counts = 0;
    }
    return kept;
}

static int put(struct relay *r, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
               const char *detail)
{
    bool whole = !r->options->whole || r->options->whole(r->options->whole_ctx, info);
    struct batch *b = wait_for_room(r);

    if (!b)
        return ST_EFAIL;
    b->info = *info;
    b->n = copy(b->events, events, n, whole);
    b->detail = detail ? strdup(detail) : NULL;
    if (detail && !b->detail)
        return st_nomem(&r->err, "the events");
    tell(r, &r->put, NULL);
    return 0;
}

static int put_all(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                   const char *detail)
{
    int rc = 0;

    while (n && !rc) {
        size_t part = n < ROOM ? n : ROOM;

        rc = put(ctx, info, events, part, part == n ? detail : NULL);
        events += part;
        n -= part;
    }
    return rc;
}

static void *produce(void *arg)
{
    struct relay *r = arg;

    r->rc = r->options->produce(r->options->produce_ctx, put_all, r, &r->err);
    tell(r, NULL, &r->ended);
    return NULL;
}

/* The next batch; NULL: there is none any more. */
static struct batch *wait_for_batch(struct relay *r)
{
    struct batch *b = NULL;

    pthread_mutex_lock(&r->lock);
    while (r->put == r->taken && !r->ended)
        pthread_cond_wait(&r->changed, &r->lock);
    if (r->put != r->taken)
        b = &r->batches[r->taken % BATCHES];
    pthread_mutex_unlock(&r->lock);
    return b;
}

static int consume(struct relay *r)
{
    struct batch *b;
    int rc = 0;

    while (!rc && (b = wait_for_batch(r))) {
        rc = r->options->consume(r->options->consume_ctx, &b->info, b->events, b->n, b->detail);
        free(b->detail);
        b->detail = NULL;
        tell(r, &r->taken, NULL);
    }
    tell(r, NULL, &r->stopped);
    return rc;
}

static int run(struct relay *r, struct st_error *err)
{
    pthread_t thread;
    int rc;

    for (size_t i = 0; i < BATCHES; i++) {
        r->batches[i].events = malloc(ROOM * sizeof(struct dec_event));
        if (!r->batches[i].events)
            return st_nomem(err, "the events");
    }
    if (pthread_create(&thread, NULL, produce, r)) /* no thread to be had: one after the other */
        return r->options->produce(r->options->produce_ctx, r->options->consume, r->options->consume_ctx,
                                   err);
    rc = consume(r);
    pthread_join(thread, NULL);
    if (rc || !r->rc)
        return rc;
    if (err)
        *err = r->err;
    return r->rc;
}

int dec_relay_run(const struct dec_relay_options *options, struct st_error *err)
{
    struct relay *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return st_nomem(err, "the events");
    r->options = options;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    rc = run(r, err);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    for (size_t i = 0; i < BATCHES; i++) {
        free(r->batches[i].events);
        free(r->batches[i].detail);
    }
    free(r);
    return rc;
}
