/* Whose turn it is in the tree writes there; others write into memory, a few threads of the trace ahead. */
#include "tracedb/tile_tree.h"

#include "tracedb/tiles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Records, each behind its size. */
struct waiting {
    ST_VEC(uint8_t) bytes;

    bool whole;
};

struct tdb_tile_tree {
    const tdb_threads *threads;

    struct tdb_tree *tree;

    size_t ahead, most;

    pthread_mutex_t lock; /* of what follows */

    pthread_cond_t changed;

    struct waiting *waiting; /* by the thread of the trace */

    size_t next; /* that nobody has taken */

    size_t turn; /* whose tiles come now: who took it writes to the tree */

    bool stop;
};

int tdb_tile_tree_new(const tdb_threads *threads, struct tdb_tree *tree, unsigned workers, size_t most,
                      struct tdb_tile_tree **tiles, struct st_error *err)
{
    struct tdb_tile_tree *t = calloc(1, sizeof(*t));

    if (t)
        t->waiting = calloc(threads->n + 1, sizeof(*t->waiting));
    if (!t || !t->waiting) {
        free(t);
        return st_nomem(err, "the summaries");
    }
    t->threads = threads;
    t->tree = tree;
    t->ahead = 2 * (size_t)workers;
    t->most = most;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    *tiles = t;
    return 0;
}

void tdb_tile_tree_free(struct tdb_tile_tree *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->threads->n; i++)
        st_vec_free(&t->waiting[i].bytes);
    free(t->waiting);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static int put_in_tree(void *ctx, const uint8_t *record, size_t size, struct st_error *err)
{
    return tdb_tree_add(ctx, 0, record, size, err);
}

static int put_in_memory(void *ctx, const uint8_t *record, size_t size, struct st_error *err)
{
    struct waiting *w = ctx;

    if (st_vec_reserve(&w->bytes, sizeof(size) + size))
        return st_nomem(err, "the summaries");
    memcpy(w->bytes.at + w->bytes.n, &size, sizeof(size));
    memcpy(w->bytes.at + w->bytes.n + sizeof(size), record, size);
    w->bytes.n += sizeof(size) + size;
    return 0;
}

static int put_waiting(struct tdb_tree *tree, const struct waiting *w, struct st_error *err)
{
    int rc = 0;

    for (size_t at = 0, size; at < w->bytes.n && !rc; at += size) {
        memcpy(&size, w->bytes.at + at, sizeof(size));
        at += sizeof(size);
        rc = tdb_tree_add(tree, 0, w->bytes.at + at, size, err);
    }
    return rc;
}

/* Takes the next thread of the trace: *direct, if its turn has come. False: there is none. With the lock
 * held. */
static bool take(struct tdb_tile_tree *t, size_t *index, bool *direct)
{
    while (!t->stop && t->next < t->threads->n && t->next >= t->turn + t->ahead)
        pthread_cond_wait(&t->changed, &t->lock);
    if (t->stop || t->next == t->threads->n)
        return false;
    *index = t->next++;
    while (!t->stop && t->threads->at[*index].n > t->most && t->turn != *index)
        pthread_cond_wait(&t->changed, &t->lock);
    *direct = t->turn == *index;
    return !t->stop;
}

/* The turn goes on, and with it what waits for that. With the lock held, which is left meanwhile. */
static int go_on(struct tdb_tile_tree *t, struct st_error *err)
{
    int rc = 0;

    while (!rc && !t->stop && t->turn < t->threads->n && t->waiting[t->turn].whole) {
        struct waiting *w = &t->waiting[t->turn];

        pthread_mutex_unlock(&t->lock);
        rc = put_waiting(t->tree, w, err);
        st_vec_free(&w->bytes);
        pthread_mutex_lock(&t->lock);
        t->turn++;
        pthread_cond_broadcast(&t->changed);
    }
    return rc;
}

/* With the lock held, which is left meanwhile. */
static int make_tiles(struct tdb_tile_tree *t, size_t index, bool direct, struct st_error *err)
{
    const struct tdb_thread *thread = &t->threads->at[index];
    int rc;

    pthread_mutex_unlock(&t->lock);
    rc = direct ? tdb_build_tiles(thread, put_in_tree, t->tree, err)
                : tdb_build_tiles(thread, put_in_memory, &t->waiting[index], err);
    pthread_mutex_lock(&t->lock);
    if (rc)
        return rc;
    if (direct)
        t->turn++;
    else
        t->waiting[index].whole = true;
    pthread_cond_broadcast(&t->changed);
    /* Whoever has the turn takes along what is whole behind it. */
    return direct || t->turn == index ? go_on(t, err) : 0;
}

int tdb_tile_tree_work(struct tdb_tile_tree *t, struct st_error *err)
{
    size_t index;
    bool direct;
    int rc = 0;

    pthread_mutex_lock(&t->lock);
    while (!rc && take(t, &index, &direct))
        rc = make_tiles(t, index, direct, err);
    if (rc) {
        t->stop = true;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}
