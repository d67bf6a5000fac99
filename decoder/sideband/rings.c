/* The rings of trace: their pieces, what the kernel had no room for, and who ran on them. */
#include "base/bisect.h"
#include "decoder/sideband/sideband_impl.h"

#include <stdlib.h>
/* A failed insertion leaves the entry without a table. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Which of the rings has a number, thread and CPU. */
struct sb_ring_key {
    struct {
        uint32_t idx;

        int32_t tid, cpu;
    } key;

    size_t index;

    UT_hash_handle hh;
};

/* Takes the ring in as its key's. NULL: no memory. */
static struct sb_ring_key *enter_ring(struct sb_context *c, const struct dec_ring *ring)
{
    struct sb_ring_key *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->key.idx = ring->idx;
    entry->key.tid = ring->tid;
    entry->key.cpu = ring->cpu;
    entry->index = c->sb->rings.n;
    if (!st_vec_push(&c->sb->rings, *ring)) {
        HASH_ADD(hh, c->ring_keys, key, sizeof(entry->key), entry);
        if (entry->hh.tbl)
            return entry;
    }
    free(entry);
    return NULL;
}

static struct dec_ring *find_ring(struct sb_context *c, const struct pd_auxtrace *head)
{
    /* perf names a thread in the rings of CPUs too: the first that it recorded. */
    struct dec_ring ring = {.idx = head->idx, .tid = (int32_t)head->tid, .cpu = (int32_t)head->cpu};
    struct sb_ring_key *entry, probe = {.index = 0};

    if (ring.cpu >= 0)
        ring.tid = -1;
    probe.key.idx = ring.idx;
    probe.key.tid = ring.tid;
    probe.key.cpu = ring.cpu;
    HASH_FIND(hh, c->ring_keys, &probe.key, sizeof(probe.key), entry);
    if (!entry)
        entry = enter_ring(c, &ring);
    return entry ? &c->sb->rings.at[entry->index] : NULL;
}

void sb_forget_rings(struct sb_context *c)
{
    struct sb_ring_key *entry, *next;

    HASH_ITER(hh, c->ring_keys, entry, next)
    {
        HASH_DEL(c->ring_keys, entry);
        free(entry);
    }
}

/* perf fills what it read of a ring up to 8 bytes (auxtrace_mmap__read() in tools/perf/util/auxtrace.c), and
 * `offset` of the next piece tells. Inside a packet the filling would be taken for the packet's bytes. */
static void cut_filling(struct dec_ring *ring, uint64_t offset)
{
    enum { FILLED_UP_TO = 8 };
    struct dec_piece *last = ring->pieces.n ? &ring->pieces.at[ring->pieces.n - 1] : NULL;
    uint64_t over = last ? last->offset + last->size - offset : 0;

    if (!last || over >= FILLED_UP_TO || over >= last->size)
        return;
    last->size -= over;
    ring->bytes -= over;
}

int sb_auxtrace(struct sb_context *c, const struct pd_record *record, struct st_error *err)
{
    const struct pd_auxtrace *head = (const void *)record->header;
    struct dec_ring *ring;

    if (!record->aux || !head->size)
        return 0;
    ring = find_ring(c, head);
    if (ring)
        cut_filling(ring, head->offset);
    if (!ring || st_vec_push(&ring->pieces, (struct dec_piece){record->aux, head->size, head->offset, false}))
        return st_nomem(err, "the trace's pieces");
    ring->bytes += head->size;
    if (head->reference > c->reference)
        c->reference = head->reference;
    return 0;
}

/* The piece that holds the byte at `offset` (not as its first) becomes two; one that begins there is marked.
 */
static int split_ring(struct dec_ring *ring, uint64_t offset)
{
    for (size_t i = 0; i < ring->pieces.n; i++) {
        struct dec_piece *p = &ring->pieces.at[i];
        struct dec_piece tail;

        if (offset < p->offset || offset - p->offset >= p->size)
            continue;
        if (offset == p->offset) {
            p->truncated = true;
            return 0;
        }
        tail =
            (struct dec_piece){p->bytes + (offset - p->offset), p->size - (offset - p->offset), offset, true};
        p->size = offset - p->offset;
        if (st_vec_push(&ring->pieces, tail))
            return -1;
        for (size_t j = ring->pieces.n - 1; j > i + 1; j--)
            ring->pieces.at[j] = ring->pieces.at[j - 1];
        ring->pieces.at[i + 1] = tail;
        return 0;
    }
    return 0;
}

int sb_split_pieces(struct sb_context *c)
{
    for (size_t i = 0; i < c->losses.n; i++)
        for (size_t j = 0; j < c->sb->rings.n; j++) {
            struct dec_ring *ring = &c->sb->rings.at[j];
            bool same = ring->cpu >= 0 ? ring->cpu == c->losses.at[i].cpu : ring->tid == c->losses.at[i].tid;

            if (same && split_ring(ring, c->losses.at[i].offset))
                return -1;
        }
    return 0;
}

/* The turn on a CPU that a time belongs to: the last one that had not ended before it, else the next. The
 * kernel writes a switch-in after it has started the trace, so what lies between two turns belongs to the
 * later one. */
static const struct dec_turn *find_turn(const struct dec_cpu *cpu, uint64_t time)
{
    size_t first = st_bisect(i, cpu->turns.n, cpu->turns.at[i].end < time);

    if (first == cpu->turns.n)
        return first ? &cpu->turns.at[first - 1] : NULL;
    return &cpu->turns.at[first];
}

static const struct dec_cpu *cpu_of(const struct dec_sideband *sb, int32_t cpu)
{
    for (size_t i = 0; i < sb->cpus.n; i++)
        if (sb->cpus.at[i].cpu == cpu)
            return &sb->cpus.at[i];
    return NULL;
}

/* Without context switches: the one thread that was traced, if there is but one. */
static struct dec_thread *only_traced(const struct dec_sideband *sb)
{
    struct dec_thread *found = NULL;

    for (size_t i = 0; i < sb->threads.n; i++) {
        struct dec_thread *t = sb->threads.at[i];

        if (!t->traced)
            continue;
        if (found)
            return NULL;
        found = t;
    }
    return found;
}

static void on_cpu(const struct dec_sideband *sb, int32_t cpu, uint64_t time, struct dec_where *where)
{
    const struct dec_cpu *on = cpu_of(sb, cpu);
    const struct dec_turn *turn = on ? find_turn(on, time) : NULL;
    const struct dec_thread *thread = turn ? turn->thread : only_traced(sb);

    where->cpu = cpu;
    where->until = turn ? turn->end + 1 : UINT64_MAX;
    if (turn && turn == &on->turns.at[on->turns.n - 1])
        where->until = UINT64_MAX;
    if (!thread)
        return;
    where->pid = thread->process->pid;
    where->tid = thread->tid;
    where->space = thread->process->space;
}

static void in_thread(const struct dec_sideband *sb, const struct dec_ring *ring, uint64_t time,
                      struct dec_where *where)
{
    const struct dec_thread *thread = dec_sideband_thread(sb, ring->tid, -1, time);
    const struct dec_slice *slice;
    size_t next;

    where->tid = ring->tid;
    if (!thread)
        return;
    where->pid = thread->process->pid;
    where->space = thread->process->space;
    next = st_bisect(i, thread->slices.n, thread->slices.at[i].end < time);
    slice = next < thread->slices.n ? &thread->slices.at[next] : NULL;
    if (slice && slice->start > time) {
        where->until = slice->start;
    } else if (slice) {
        where->cpu = slice->cpu;
        where->until = slice->end + 1;
    }
}

int dec_sideband_where(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    const struct dec_sideband *sb = ctx;
    const struct dec_ring *r = &sb->rings.at[ring];

    *where = (struct dec_where){-1, -1, -1, NULL, UINT64_MAX};
    if (r->tid >= 0)
        in_thread(sb, r, time, where);
    else
        on_cpu(sb, r->cpu, time, where);
    return 0;
}
