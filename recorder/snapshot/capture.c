/* Freeze, copy, resume. */
#include "recorder/snapshot/capture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAPPED = 64 * 1024 /* bytes: smaller copies are not worth a mapping */ };

/* A child of this process (a decoder, an action) has no use for it, and to copy the page tables of a gigabyte
 * holds up the thread that forks, which also takes the next trap. */
static char *take_bytes(size_t size)
{
    char *at;

    if (size < MAPPED)
        return malloc(size + 1);
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_DONTFORK);
    return at;
}

static void free_bytes(void *at, size_t size)
{
    if (size < MAPPED)
        free(at);
    else
        munmap(at, size);
}

static int copy_ring(struct rec_capture *c, const struct rec_ring *from, struct st_error *err)
{
    struct rec_ring ring = *from;
    char *bytes = take_bytes(from->size[0] + from->size[1]);

    if (!bytes)
        return st_nomem(err, "a copy of a ring");
    if (from->size[0])
        memcpy(bytes, from->part[0], from->size[0]);
    if (from->size[1])
        memcpy(bytes + from->size[0], from->part[1], from->size[1]);
    ring.part[0] = bytes;
    ring.size[0] += ring.size[1];
    ring.part[1] = NULL;
    ring.size[1] = 0;
    if (st_vec_push(&c->rings, ring)) {
        free_bytes(bytes, ring.size[0]);
        return st_nomem(err, "a copy of a ring");
    }
    return 0;
}

static int copy_switches(struct rec_capture *c, const struct rec_source_ops *ops, struct rec_source *source,
                         struct st_error *err)
{
    const struct rec_switch *switches = NULL;
    size_t n = 0;
    int rc;

    if (!ops->own_switches || !ops->switches)
        return 0;
    rc = ops->switches(source, &switches, &n, err);
    if (rc || !n)
        return rc;
    if (st_vec_reserve(&c->switches, n))
        return st_nomem(err, "the context switches");
    memcpy(c->switches.at, switches, n * sizeof(*switches));
    c->switches.n = n;
    return 0;
}

static int copy_frozen(struct rec_capture *c, const struct rec_source_ops *ops, struct rec_source *source,
                       struct rec_clock *clock, struct st_error *err)
{
    const struct rec_ring *rings = NULL;
    size_t n = 0;
    int rc = ops->rings(source, &rings, &n, err);

    for (size_t i = 0; !rc && i < n; i++)
        rc = copy_ring(c, &rings[i], err);
    if (!rc)
        rc = copy_switches(c, ops, source, err);
    if (!rc)
        rc = rec_clock_moment(clock, &c->moment, err);
    return rc;
}

int rec_capture_freeze(struct rec_capture *c, const struct rec_source_ops *ops, struct rec_source *source,
                       struct rec_first first, struct rec_clock *clock, struct st_error *err)
{
    int rc;

    *c = (struct rec_capture){0};
    rc = ops->freeze(source, first, &c->how, err);
    if (rc && c->how.asked_time && !c->how.done_time)
        c->how.done_time = c->how.asked_time; /* some rings may have stopped, at any time since */
    if (rc && c->how.asked_time)
        rec_clock_now(clock, &c->resumed, NULL);
    return rc;
}

int rec_capture_copy(struct rec_capture *c, const struct rec_source_ops *ops, struct rec_source *source,
                     struct rec_clock *clock, struct st_error *err)
{
    int rc = copy_frozen(c, ops, source, clock, err);
    int resumed = ops->resume(source, rc ? NULL : err);

    /* The pause is a gap of later snapshots, whether this one came to something or not. */
    if (!resumed)
        resumed = rec_clock_now(clock, &c->resumed, rc ? NULL : err);
    if (!rc)
        rc = resumed;
    if (rc)
        rec_capture_free(c);
    return rc;
}

void rec_capture_free(struct rec_capture *c)
{
    for (size_t i = 0; i < c->rings.n; i++)
        free_bytes((void *)c->rings.at[i].part[0], c->rings.at[i].size[0]);
    st_vec_free(&c->rings);
    st_vec_free(&c->switches);
}
