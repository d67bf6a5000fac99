/* A queue of records in chunks of memory. */
#include "recorder/sideband/record_log.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 128 * 1024 /* twice the largest record */
};

struct entry {
    uint64_t time;

    uint64_t seq;

    struct perf_event_header record;
};

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static struct rec_chunk *new_chunk(struct rec_log *log)
{
    struct rec_chunk *c = malloc(CHUNK);

    if (!c)
        return NULL;
    *c = (struct rec_chunk){.room = CHUNK - sizeof(*c), .holders = 1};
    if (log->last)
        log->last->next = c;
    else
        log->first = c;
    log->last = c;
    log->bytes += CHUNK;
    return c;
}

int rec_log_add(struct rec_log *log, const struct perf_event_header *record, uint64_t time, uint64_t seq)
{
    size_t need = 16 + padded(record->size);
    struct rec_chunk *c = log->last;
    struct entry *e;

    if (!c || c->room - c->used < need)
        c = new_chunk(log);
    if (!c)
        return -1;
    e = (struct entry *)((char *)c->bytes + c->used);
    e->time = time;
    e->seq = seq;
    memcpy(&e->record, record, record->size);
    c->used += need;
    if (time > c->newest)
        c->newest = time;
    log->n++;
    return 0;
}

static size_t entry_size(const struct entry *e)
{
    return 16 + padded(e->record.size);
}

static size_t count_entries(const struct rec_chunk *c)
{
    size_t n = 0;

    for (size_t at = 0; at < c->used; n++)
        at += entry_size((const struct entry *)((const char *)c->bytes + at));
    return n;
}

void rec_log_trim(struct rec_log *log, size_t bytes)
{
    while (log->bytes > bytes && log->first != log->last) {
        struct rec_chunk *c = log->first;

        if (c->newest > log->dropped)
            log->dropped = c->newest;
        log->n -= count_entries(c);
        log->first = c->next;
        log->bytes -= CHUNK;
        rec_chunk_drop(c);
    }
}

size_t rec_chunk_fill(const struct rec_chunk *c, size_t used, struct rec_stored *list)
{
    size_t n = 0;

    for (size_t at = 0; at < used;) {
        const struct entry *e = (const struct entry *)((const char *)c->bytes + at);

        list[n++] = (struct rec_stored){.time = e->time, .seq = e->seq, .record = &e->record};
        at += entry_size(e);
    }
    return n;
}

int rec_log_hold(const struct rec_log *log, struct rec_view *view)
{
    for (struct rec_chunk *c = log->first; c; c = c->next) {
        if (st_vec_push(&view->chunks, (struct rec_view_chunk){.chunk = c, .used = c->used}))
            return -1;
        atomic_fetch_add(&c->holders, 1);
    }
    view->n += log->n;
    return 0;
}

void rec_chunk_drop(struct rec_chunk *c)
{
    if (atomic_fetch_sub(&c->holders, 1) == 1)
        free(c);
}

int rec_log_list(const struct rec_log *log, struct rec_stored **list)
{
    size_t n = 0;

    *list = calloc(log->n + 1, sizeof(**list));
    if (!*list)
        return -1;
    for (const struct rec_chunk *c = log->first; c; c = c->next)
        n += rec_chunk_fill(c, c->used, *list + n);
    return 0;
}

int rec_log_filter(const struct rec_log *log, const bool *drop, struct rec_log *to)
{
    size_t i = 0;

    *to = (struct rec_log){0};
    for (const struct rec_chunk *c = log->first; c; c = c->next)
        for (size_t at = 0; at < c->used; i++) {
            const struct entry *e = (const struct entry *)((const char *)c->bytes + at);

            if (!drop[i] && rec_log_add(to, &e->record, e->time, e->seq)) {
                rec_log_free(to);
                return -1;
            }
            at += entry_size(e);
        }
    return 0;
}

void rec_log_free(struct rec_log *log)
{
    while (log->first) {
        struct rec_chunk *c = log->first;

        log->first = c->next;
        rec_chunk_drop(c);
    }
    *log = (struct rec_log){0};
}
