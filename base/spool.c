/* Chunks of growing size; those that the budget has no room for are written out as soon as they are full. */
#include "base/spool.h"

#include "base/folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ROOM = 4096, MOST_ROOM = 128 << 10, BLOCK = 4096 /* of a file system */ };

static_assert((int)FIRST_ROOM >= (int)ST_SPOOL_MOST, "any chunk has room for what is asked for");

struct st_spill {
    char folder[PATH_MAX];

    int (*open)(void); /* NULL: it is made in `folder` */

    size_t budget;

    pthread_mutex_t lock; /* of what follows */

    size_t used; /* bytes of memory */

    int fd; /* -1: not made yet */

    uint64_t end; /* of the file */
};

static void set_folder(char *folder, const char *beside)
{
    char *slash;

    strcpy(folder, beside);
    slash = strrchr(folder, '/');
    if (!slash)
        strcpy(folder, ".");
    else
        slash[slash == folder] = '\0';
}

int st_spill_new(const char *beside, size_t budget, struct st_spill **spill, struct st_error *err)
{
    struct st_spill *s = calloc(1, sizeof(*s));

    if (!s)
        return st_nomem(err, "what waits for its place in the database");
    if (strlen(beside) >= sizeof(s->folder)) {
        free(s);
        return st_fail(err, ST_EUSAGE, "the name '%.200s...' is too long", beside);
    }
    set_folder(s->folder, beside);
    s->budget = budget;
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    *spill = s;
    return 0;
}

void st_spill_free(struct st_spill *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void st_spill_by(struct st_spill *s, int (*open)(void))
{
    s->open = open;
}

uint64_t st_spill_bytes(struct st_spill *s)
{
    uint64_t bytes;

    pthread_mutex_lock(&s->lock);
    bytes = s->end;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

/* ---- the file ---- */

static int failed(const struct st_spill *s, const char *what, struct st_error *err)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    int rc = st_fail_errno(err, ST_EFAIL, "cannot %s a temporary file in '%s'", what, s->folder);

    if (!full)
        return rc;
    return st_hint(err,
                   "what memory has no room for goes there: free some space, write the database elsewhere "
                   "(-o), or let 'stalltrap decode' have more memory (--memory)");
}

static int open_file(const struct st_spill *s)
{
    int folder, fd;

    if (s->open)
        return s->open();
    folder = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = folder < 0 ? -1 : st_folder_create_nameless(folder);
    if (folder >= 0)
        close(folder);
    return fd;
}

/* Where `size` bytes go in the file. Places begin with blocks, so that dropping them frees those. */
static int take_place(struct st_spill *s, size_t size, uint64_t *at, struct st_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->fd < 0)
        s->fd = open_file(s);
    if (s->fd < 0)
        rc = failed(s, "make", err);
    *at = s->end;
    s->end += (size + BLOCK - 1) / BLOCK * BLOCK;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int write_out(struct st_spill *s, struct st_spool_chunk *c, struct st_error *err)
{
    int rc = take_place(s, c->used, &c->at, err);

    for (size_t done = 0; done < c->used && !rc;) {
        ssize_t n = pwrite(s->fd, c->data + done, c->used - done, (off_t)(c->at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            rc = failed(s, "write", err);
        else
            done += (size_t)n;
    }
    return rc;
}

static int read_in(const struct st_spill *s, const struct st_spool_chunk *c, uint8_t *to,
                   struct st_error *err)
{
    for (size_t done = 0; done < c->used;) {
        ssize_t n = pread(s->fd, to + done, c->used - done, (off_t)(c->at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : EIO;
            return failed(s, "read", err);
        }
        done += (size_t)n;
    }
    return 0;
}

/* ---- memory ---- */

static bool over_budget(struct st_spill *s)
{
    bool over;

    pthread_mutex_lock(&s->lock);
    over = s->used > s->budget;
    pthread_mutex_unlock(&s->lock);
    return over;
}

static void account(struct st_spill *s, size_t more, size_t less)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->used += more;
    s->used -= less;
    pthread_mutex_unlock(&s->lock);
}

static uint8_t *new_data(struct st_spill *s, uint32_t room)
{
    uint8_t *data = malloc(room + ST_SPOOL_SLACK);

    if (data)
        account(s, room, 0);
    return data;
}

/* The last chunk is full: it may go, and its memory serves the next one. */
int st_spool_grow(struct st_spool *s, struct st_error *err)
{
    struct st_spool_chunk *last = s->chunks.n ? &s->chunks.at[s->chunks.n - 1] : NULL;
    struct st_spool_chunk next = {.room = last ? last->room * 2 : FIRST_ROOM};

    if (next.room > MOST_ROOM)
        next.room = MOST_ROOM;
    if (last && s->spill && over_budget(s->spill)) {
        int rc = write_out(s->spill, last, err);

        if (rc)
            return rc;
        next.room = last->room;
        next.data = last->data;
        last->data = NULL;
    }
    if (!next.data)
        next.data = new_data(s->spill, next.room);
    if (next.data && !st_vec_push(&s->chunks, next))
        return 0;
    if (next.data)
        account(s->spill, 0, next.room);
    free(next.data);
    return st_nomem(err, "what waits for its place in the database");
}

void st_spool_clear(struct st_spool *s)
{
    for (size_t i = 0; i < s->chunks.n; i++) {
        struct st_spool_chunk *c = &s->chunks.at[i];

        if (c->data)
            account(s->spill, 0, c->room);
        else if (s->spill) /* where it cannot be done the space is free when the file is closed */
            fallocate(s->spill->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)c->at,
                      (c->used + BLOCK - 1) / BLOCK * BLOCK);
        free(c->data);
    }
    st_vec_free(&s->chunks);
}

/* ---- reading ---- */

static int load(struct st_spool_reader *r, const struct st_spool_chunk *c, struct st_error *err)
{
    int rc;

    if (r->loaded == r->chunk + 1)
        return 0;
    if (r->room < c->used) {
        free(r->buffer);
        r->room = 0;
        r->buffer = malloc(MOST_ROOM + ST_SPOOL_SLACK);
        if (!r->buffer)
            return st_nomem(err, "what waits for its place in the database");
        r->room = MOST_ROOM;
    }
    r->loaded = 0;
    rc = read_in(r->spool->spill, c, r->buffer, err);
    if (!rc)
        r->loaded = r->chunk + 1;
    return rc;
}

int st_spool_seek(struct st_spool_reader *r, struct st_spool_place place, struct st_error *err)
{
    const struct st_spool_chunk *c;
    const uint8_t *data;
    int rc = 0;

    r->at = r->end = NULL;
    r->chunk = place.chunk;
    if (place.chunk >= r->spool->chunks.n)
        return 0;
    c = &r->spool->chunks.at[place.chunk];
    if (!c->data)
        rc = load(r, c, err);
    if (rc)
        return rc;
    data = c->data ? c->data : r->buffer;
    r->at = data + place.offset;
    r->end = data + c->used;
    return 0;
}

int st_spool_next(struct st_spool_reader *r, struct st_error *err)
{
    return st_spool_seek(r, (struct st_spool_place){r->chunk + 1, 0}, err);
}

void st_spool_close(struct st_spool_reader *r)
{
    free(r->buffer);
    *r = (struct st_spool_reader){0};
}
