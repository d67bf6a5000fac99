/* Which state records of the side-band say nothing any more. */
#include "base/bisect.h"
#include "recorder/perf/record.h"
#include "recorder/sideband/record_log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A thread that ended: everything about it that arrived before `at` is about a past. */
struct ended {
    uint32_t pid, tid;

    size_t at; /* index of its EXIT record */
};

struct ended_list {
    ST_VEC(struct ended) v;
};

static int by_tid(const void *a, const void *b)
{
    const struct ended *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The EXIT records of the older half of the threads that ended. */
static int collect_ended(const struct rec_stored *list, size_t n, struct ended_list *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct rec_task_record *r = (const void *)list[i].record;

        if (r->header.type != PERF_RECORD_EXIT || r->header.size < sizeof(*r))
            continue;
        if (st_vec_push(&e->v, (struct ended){.pid = r->pid, .tid = r->tid, .at = i}))
            return -1;
    }
    if (e->v.n)
        e->v.n = (e->v.n + 1) / 2;
    if (e->v.n)
        qsort(e->v.at, e->v.n, sizeof(*e->v.at), by_tid);
    return 0;
}

/* The first end of `tid` at or after record `i`, or NULL. */
static const struct ended *find_end(const struct ended_list *e, uint32_t tid, size_t i)
{
    size_t first = st_bisect(k, e->v.n, e->v.at[k].tid < tid || (e->v.at[k].tid == tid && e->v.at[k].at < i));

    return first < e->v.n && e->v.at[first].tid == tid ? &e->v.at[first] : NULL;
}

/* A process whose first thread ended may live on in its others; its mappings are then still needed. */
static bool process_gone(uint32_t pid)
{
    return kill((pid_t)pid, 0) && errno == ESRCH;
}

static bool is_stale(const struct ended_list *e, const struct perf_event_header *r, size_t i)
{
    const struct rec_task_record *task = (const void *)r;
    const struct rec_comm_record *comm = (const void *)r; /* pid and tid stand there in MMAP and MMAP2 too */

    switch (r->type) {
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return r->size >= sizeof(*task) && find_end(e, task->tid, i);
    case PERF_RECORD_COMM:
        return r->size >= sizeof(*comm) && find_end(e, comm->tid, i);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return r->size >= sizeof(*comm) && find_end(e, comm->pid, i) && process_gone(comm->pid);
    default:
        return false;
    }
}

struct mapping {
    uint32_t pid;

    uint64_t addr, len;

    size_t at;
};

static int by_place(const void *a, const void *b)
{
    const struct mapping *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Of mappings at the same place of a process, all but the last two: the last, and the one that may still be
 * what an older part of the trace ran in. */
static int mark_repeated(const struct rec_stored *list, size_t n, bool *drop)
{
    ST_VEC(struct mapping) maps = {0};

    for (size_t i = 0; i < n; i++) {
        const struct rec_mmap2_record *m = (const void *)list[i].record;

        if (drop[i] || m->header.type != PERF_RECORD_MMAP2 || m->header.size < sizeof(*m))
            continue;
        if (st_vec_push(&maps, (struct mapping){.pid = m->pid, .addr = m->addr, .len = m->len, .at = i})) {
            st_vec_free(&maps);
            return -1;
        }
    }
    if (maps.n)
        qsort(maps.at, maps.n, sizeof(*maps.at), by_place);
    for (size_t i = 0; i + 2 < maps.n; i++) {
        const struct mapping *a = &maps.at[i], *c = &maps.at[i + 2];

        if (a->pid == c->pid && a->addr == c->addr && a->len == c->len)
            drop[a->at] = true;
    }
    st_vec_free(&maps);
    return 0;
}

int rec_store_mark_stale(const struct rec_stored *list, size_t n, bool *drop)
{
    struct ended_list ended = {0};
    int rc = collect_ended(list, n, &ended);

    for (size_t i = 0; !rc && i < n; i++)
        drop[i] = is_stale(&ended, list[i].record, i);
    st_vec_free(&ended.v);
    return rc ? rc : mark_repeated(list, n, drop);
}
