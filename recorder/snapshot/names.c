/* The names of the kernel addresses in the stall records and the samples: struct st_symbol_record. */
#include "base/vec.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot_impl.h"
#include "triggers/trigger.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 48 * 1024, /* bytes of one record */
    LONGEST = 700,    /* of a name */
};

struct names {
    const struct rec_kallsyms *kallsyms;

    struct snap *snap; /* NULL: they stay in `text` */

    ST_VEC(uint64_t) addresses;

    snap_bytes text;

    uint16_t n;
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int take_frames(struct names *names, const st_u64 *frames, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (frames[i] && st_vec_push(&names->addresses, frames[i]))
            return -1;
    return 0;
}

static int take_record(struct names *names, const struct perf_event_header *record)
{
    uint64_t raw[REC_RAW_WORDS];
    const struct st_stall_record *stall;
    size_t at;
    uint32_t size = rec_sample_raw(record, raw, &at);
    int rc;

    if (!size || trg_record(raw, size, &stall, NULL) != 1)
        return 0;
    rc = take_frames(names, stall->kstack, stall->kstack_n);
    if (!rc)
        rc = take_frames(names, stall->wstack, st_stall_waker_kernel(stall));
    return rc ? rc : take_frames(names, &stall->timer_func, 1);
}

static int take_sample(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    struct names *names = ctx;
    const uint64_t *chain;
    size_t n = snap_sample_chain(record, &chain);

    (void)err;
    for (size_t i = 0; i < n; i++) {
        if (chain[i] >= PERF_CONTEXT_MAX || chain[i] >> 63 == 0)
            continue;
        if (st_vec_push(&names->addresses, chain[i]))
            return -1;
    }
    return 0;
}

static int take_rings(struct names *names, const struct rec_snapshot *in)
{
    int rc = 0;

    for (size_t i = 0; in->facts->records && !rc && i < in->capture->rings.n; i++)
        rc = snap_each_record(&in->capture->rings.at[i], take_sample, names, NULL);
    return rc;
}

static void put_head(struct names *names)
{
    struct st_symbol_record head = {.magic = ST_SYMBOL_MAGIC, .version = ST_STALL_VERSION, .n = names->n};

    memcpy(names->text.at, &head, sizeof(head));
}

static int flush(struct names *names, struct st_error *err)
{
    int rc = 0;

    put_head(names);
    if (names->n && names->snap)
        rc = snap_write_sample(names->snap, SNAP_STALLS, names->text.at, names->text.n, err);
    if (names->snap) {
        names->text.n = sizeof(struct st_symbol_record);
        names->n = 0;
    }
    return rc;
}

static int put(struct names *names, uint64_t address, struct st_error *err)
{
    uint64_t start = 0;
    const char *name = rec_kallsyms_find(names->kallsyms, address, &start);
    size_t len = name ? strnlen(name, LONGEST) : 0;
    char *to = names->text.at + names->text.n;

    if (!name || names->text.n > MOST)
        return 0;
    memcpy(to, &address, sizeof(address));
    memcpy(to + 8, &start, sizeof(start));
    memcpy(to + 16, name, len);
    to[16 + len] = '\0';
    names->text.n += 16 + len + 1;
    names->n++;
    return names->text.n > MOST ? flush(names, err) : 0;
}

static int write_names(struct names *names, struct st_error *err)
{
    int rc = 0;

    if (st_vec_reserve(&names->text, MOST + LONGEST + 32))
        return st_nomem(err, "the names of kernel functions");
    names->text.n = sizeof(struct st_symbol_record);
    if (names->addresses.n)
        qsort(names->addresses.at, names->addresses.n, sizeof(uint64_t), by_value);
    for (size_t i = 0; !rc && i < names->addresses.n; i++)
        if (i == 0 || names->addresses.at[i] != names->addresses.at[i - 1])
            rc = put(names, names->addresses.at[i], err);
    return rc ? rc : flush(names, err);
}

int snap_names_of(const struct perf_event_header *record, const struct rec_kallsyms *kallsyms,
                  snap_bytes *raw, struct st_error *err)
{
    struct names names = {.kallsyms = kallsyms};
    int rc = 0;

    if (kallsyms && take_record(&names, record))
        rc = st_nomem(err, "the names of kernel functions");
    if (!rc && names.addresses.n)
        rc = write_names(&names, err);
    st_vec_free(&names.addresses);
    if (rc || !names.n)
        st_vec_free(&names.text);
    else
        *raw = names.text;
    return rc;
}

int snap_write_names(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err)
{
    struct names names = {.kallsyms = s->in->kallsyms, .snap = s};
    int rc = 0;

    if (!s->in->kallsyms)
        return 0;
    for (size_t i = 0; !rc && i < n; i++)
        if (take_record(&names, list[i].record))
            rc = st_nomem(err, "the names of kernel functions");
    if (!rc && take_rings(&names, s->in))
        rc = st_nomem(err, "the names of kernel functions");
    if (!rc)
        rc = write_names(&names, err);
    st_vec_free(&names.addresses);
    st_vec_free(&names.text);
    return rc;
}
