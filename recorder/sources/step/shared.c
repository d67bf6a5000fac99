/* The shared memory: one sparse mapping of slots and rings. */
#include "recorder/sources/step/shared.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static struct step_shared *reserve(uint32_t nslots, size_t ring_bytes, size_t page)
{
    size_t head = round_up(sizeof(struct step_shared) + nslots * sizeof(struct step_slot), page), bytes;
    struct step_shared *s;

    if (__builtin_mul_overflow(ring_bytes, nslots, &bytes) || __builtin_add_overflow(bytes, head, &bytes))
        return NULL;
    s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->bytes = bytes;
    s->nslots = nslots;
    s->ring_bytes = ring_bytes;
    for (uint32_t i = 0; i < nslots; i++) {
        s->slots[i].ring.data = (uint8_t *)s + head + i * ring_bytes;
        s->slots[i].ring.size = ring_bytes;
    }
    return s;
}

int step_shared_create(size_t ring_bytes, struct step_shared **shared, struct st_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct step_shared *s = NULL;

    ring_bytes = round_up(ring_bytes ? ring_bytes : 1, page);
    for (uint32_t n = STEP_SLOTS; n && !s; n /= 2)
        s = reserve(n, ring_bytes, page);
    if (!s)
        return st_fail(err, ST_ENOMEM, "cannot reserve memory for a ring of %zu bytes", ring_bytes);
    *shared = s;
    return 0;
}

void step_shared_free(struct step_shared *shared)
{
    if (shared)
        munmap(shared, shared->bytes);
}

static struct step_slot *find_slot(struct step_shared *shared)
{
    struct step_slot *oldest = NULL;

    for (uint32_t i = 0; i < shared->nslots; i++) {
        struct step_slot *slot = &shared->slots[i];

        if (slot->state == STEP_SLOT_FREE)
            return slot;
        if (slot->state == STEP_SLOT_ENDED && (!oldest || slot->end_time < oldest->end_time))
            oldest = slot;
    }
    return oldest;
}

struct step_slot *step_slot_take(struct step_shared *shared, pid_t pid, pid_t tid, uint64_t now)
{
    struct step_slot *slot = find_slot(shared);

    if (!slot)
        return NULL;
    slot->state = STEP_SLOT_LIVE;
    slot->pid = pid;
    slot->tid = tid;
    slot->first_time = now;
    slot->end_time = 0;
    slot->ring.head = 0;
    slot->nswitches = 0;
    return slot;
}

void step_slot_end(struct step_slot *slot, uint64_t now)
{
    slot->state = STEP_SLOT_ENDED;
    slot->end_time = now;
}
