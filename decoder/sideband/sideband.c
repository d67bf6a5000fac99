/* The side-band's outside: read all records, apply them in the order of their times. */
#include "decoder/sideband/sideband.h"
#include "decoder/sideband/sideband_impl.h"

#include <stdlib.h>
#include <string.h>

/* The order of the file decides among equal times. */
static int by_time(const void *a, const void *b)
{
    const struct sb_timed *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int keep_build_id(void *ctx, const struct pd_build_id *id)
{
    struct sb_context *c = ctx;

    return st_vec_push(&c->build_ids, *id) ? ST_ENOMEM : 0;
}

/* Of two with one name, the first of the file is the first here too. */
static int by_name(const void *a, const void *b)
{
    const struct pd_build_id *x = a, *y = b;
    int order = strcmp(x->filename, y->filename);

    return order ? order : x->filename < y->filename ? -1 : x->filename > y->filename;
}

/* The time at which the rings were read, which PD_RECORD_AUXTRACE carries as a TSC, can lie well
 * behind the last record: a thread that waits makes none. */
static void end_at_copy(struct dec_sideband *sb, uint64_t reference)
{
    uint64_t time = dec_clock_ns(&sb->pt.clock, reference);

    if (sb->pt.clock.known && sb->last && time > sb->last && time - sb->last < 60ull * 60 * 1000000000)
        sb->last = time;
}

static void end_processes(struct dec_sideband *sb)
{
    for (size_t i = 0; i < sb->threads.n; i++)
        sb->threads.at[i]->process->end = 0;
    for (size_t i = 0; i < sb->threads.n; i++) {
        struct dec_process *p = sb->threads.at[i]->process;

        if (sb->threads.at[i]->end > p->end)
            p->end = sb->threads.at[i]->end;
    }
}

static int apply_all(struct sb_context *c, struct st_error *err)
{
    int rc = 0;

    if (c->timed.n)
        qsort(c->timed.at, c->timed.n, sizeof(c->timed.at[0]), by_time);
    for (size_t i = 0; i < c->timed.n && !rc; i++)
        rc = sb_apply(c, &c->timed.at[i], err);
    if (rc)
        return rc;
    c->sb->pt.reference = c->reference;
    end_at_copy(c->sb, c->reference);
    if (sb_apply_meta(c))
        return st_nomem(err, "the side-band");
    if (c->sb->snapshot)
        c->losses.n = 0; /* offsets of an overwritten ring tell nothing */
    if (sb_split_pieces(c) || sb_end_switches(c))
        return st_nomem(err, "the side-band");
    sb_sort_kernel_names(c->sb);
    sb_sort_samples(c->sb);
    end_processes(c->sb);
    return 0;
}

static int read_all(struct sb_context *c, struct st_error *err)
{
    int rc = dec_space_new(NULL, &c->sb->kernel, err);

    if (!rc)
        rc = pd_reader_build_ids(c->reader, keep_build_id, c, err);
    if (rc == ST_ENOMEM)
        return st_nomem(err, "the build ids");
    if (c->build_ids.n)
        qsort(c->build_ids.at, c->build_ids.n, sizeof(c->build_ids.at[0]), by_name);
    if (!rc)
        rc = pd_reader_each(c->reader, sb_collect, c, err);
    if (!rc)
        rc = sb_map_kcore(c, err);
    return rc ? rc : apply_all(c, err);
}

int dec_sideband_read(struct pd_reader *reader, struct dec_images *images, struct dec_sideband **sideband,
                      struct st_error *err)
{
    struct sb_context c = {.reader = reader, .images = images};
    int rc;

    c.sb = calloc(1, sizeof(*c.sb));
    if (!c.sb)
        return st_nomem(err, "the side-band");
    rc = read_all(&c, err);
    st_vec_free(&c.losses);
    st_vec_free(&c.earliest);
    st_vec_free(&c.build_ids);
    st_vec_free(&c.timed);
    st_vec_free(&c.vdsos);
    sb_forget_rings(&c);
    if (rc) {
        dec_sideband_free(c.sb);
        return rc;
    }
    *sideband = c.sb;
    return 0;
}

static int add_raw(struct sb_context *c, size_t n, struct dec_space *space)
{
    struct dec_process *process = sb_process(c, 1);

    if (!process)
        return -1;
    dec_space_free(process->space);
    process->space = space;
    process->borrowed = true;
    for (size_t i = 0; i < n; i++) {
        struct dec_ring ring = {.idx = (uint32_t)i, .tid = (int32_t)i + 1, .cpu = -1};
        struct dec_thread *thread = sb_thread(c, 1, ring.tid, -1);

        if (!thread || sb_name(thread, 0, "raw") || st_vec_push(&c->sb->rings, ring))
            return -1;
    }
    return 0;
}

int dec_sideband_raw(size_t n, const struct dec_pt_config *pt, struct dec_space *space,
                     struct dec_sideband **sideband, struct st_error *err)
{
    struct dec_sideband *sb = calloc(1, sizeof(*sb));
    struct sb_context c = {.sb = sb};

    if (!sb || add_raw(&c, n, space)) {
        dec_sideband_free(sb);
        return st_nomem(err, "the threads");
    }
    sb->pt = *pt;
    sb->has_pt = true;
    *sideband = sb;
    return 0;
}

void dec_sideband_free(struct dec_sideband *sb)
{
    if (!sb)
        return;
    sb_free_threads(sb);
    for (size_t i = 0; i < sb->cpus.n; i++) {
        st_vec_free(&sb->cpus.at[i].turns);
        st_vec_free(&sb->cpus.at[i].holes);
    }
    for (size_t i = 0; i < sb->rings.n; i++)
        st_vec_free(&sb->rings.at[i].pieces);
    st_vec_free(&sb->cpus);
    st_vec_free(&sb->rings);
    for (size_t i = 0; i < sb->mark_names.n; i++)
        free(sb->mark_names.at[i]);
    st_vec_free(&sb->mark_names);
    st_vec_free(&sb->notices);
    st_vec_free(&sb->samples);
    st_vec_free(&sb->sample_rings);
    st_vec_free(&sb->points);
    st_vec_free(&sb->point_rings);
    st_vec_free(&sb->stalls);
    st_vec_free(&sb->kernel_names);
    st_vec_free(&sb->meta);
    st_vec_free(&sb->meta_by_key);
    st_vec_free(&sb->pauses);
    dec_space_free(sb->kernel);
    free(sb);
}
