/* Packs calls in blocks, so that a reader need not begin with the first. */
#include "tracedb/calls.h"

#include <stdlib.h>

static void note(struct tdb_calls *c, const struct tdb_span *s)
{
    if (!c->n)
        c->first = *s;
    if (s->parent > c->n || s->start < c->last)
        c->disorder = true;
    c->last = s->start;
    c->end = s->start + s->duration > c->end ? s->start + s->duration : c->end;
    c->symbols = s->symbol >= c->symbols ? s->symbol + 1 : c->symbols;
    c->depths = s->depth >= c->depths ? s->depth + 1 : c->depths;
}

int tdb_calls_add(struct tdb_calls *c, const struct tdb_span *spans, const struct tdb_work *work, size_t n,
                  struct st_error *err)
{
    for (size_t i = 0; i < n; i++) {
        bool begins = c->n % TDB_CALLS_BLOCK == 0;
        struct st_spool_place place;
        uint8_t *to = st_spool_room(&c->spool, TDB_PACKED_MOST, &place, err);

        if (!to)
            return err ? err->code : ST_EFAIL;
        if (begins && st_vec_push(&c->blocks, place))
            return st_nomem(err, "the calls");
        st_spool_wrote(&c->spool, (size_t)(tdb_pack(to, &spans[i], work ? &work[i] : NULL, (uint32_t)c->n,
                                                    begins ? 0 : c->last) -
                                           to));
        note(c, &spans[i]);
        c->n++;
    }
    return 0;
}

void tdb_calls_free(struct tdb_calls *c)
{
    st_spool_clear(&c->spool);
    st_vec_free(&c->blocks);
    c->n = 0;
}

int tdb_calls_open(struct tdb_calls_reader *r, const struct tdb_calls *c, size_t index, struct st_error *err)
{
    *r = (struct tdb_calls_reader){.calls = c, .spool.spool = &c->spool};
    return tdb_calls_seek(r, index, err);
}

int tdb_calls_seek(struct tdb_calls_reader *r, size_t index, struct st_error *err)
{
    struct tdb_call skipped;
    int rc;

    r->next = index - index % TDB_CALLS_BLOCK;
    if (index >= r->calls->n) {
        r->next = r->calls->n;
        return 0;
    }
    rc = st_spool_seek(&r->spool, r->calls->blocks.at[index / TDB_CALLS_BLOCK], err);
    while (!rc && r->next < index)
        rc = tdb_calls_next(r, &skipped, err) < 0 ? ST_EFAIL : 0;
    return rc;
}

void tdb_calls_close(struct tdb_calls_reader *r)
{
    st_spool_close(&r->spool);
}
