/* Address spaces over time: mappings sorted by start, each with the span of time it stood. */
#include "decoder/image/space.h"

#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A byte of code that changed. */
struct patch {
    uint64_t address, time;

    uint32_t order; /* of those at one time */

    uint8_t fresh, old;

    bool has_fresh, has_old;
};

/* They come in the order of their times and are looked up by address: sorted when the first is looked for. */
struct patches {
    ST_VEC(struct patch) by_address; /* then by time and order */

    ST_VEC(uint64_t) times; /* ascending */

    atomic_bool sorted;
};

/* When mappings end: worked out when it is first asked for. */
struct ends {
    ST_VEC(uint64_t) times; /* ascending */

    atomic_bool known;
};

struct dec_space {
    const struct dec_space *kernel;

    ST_VEC(struct dec_mapping) maps; /* by start, then since */

    uint64_t *reach; /* for each of maps: the highest end up to and with it */

    size_t nreach;

    struct patches patches;

    struct ends ends;

    bool probed;
};

/* In full `[uprobes-trampoline]`; the kernel's MMAP records have names of at most 15 bytes for what is no
 * file (perf_event_mmap_event()). */
static const char trampoline[] = "[uprobes-trampo";

int dec_space_new(const struct dec_space *kernel, struct dec_space **space, struct st_error *err)
{
    struct dec_space *made = calloc(1, sizeof(*made));
    if (!made)
        return st_nomem(err, "an address space");
    made->kernel = kernel;
    *space = made;
    return 0;
}

void dec_space_free(struct dec_space *space)
{
    if (!space)
        return;
    st_vec_free(&space->maps);
    free(space->reach);
    st_vec_free(&space->patches.by_address);
    st_vec_free(&space->patches.times);
    st_vec_free(&space->ends.times);
    free(space);
}

size_t dec_space_count(const struct dec_space *space)
{
    return space->maps.n;
}

const struct dec_mapping *dec_space_at(const struct dec_space *space, size_t index)
{
    return &space->maps.at[index];
}

/* The first mapping whose start is above the address. */
static size_t above(const struct dec_space *space, uint64_t address)
{
    size_t low = 0, high = space->maps.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space->maps.at[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for `more` mappings, so that what follows cannot fail half-way. */
static int reserve(struct dec_space *space, size_t more)
{
    if (st_vec_reserve(&space->maps, more))
        return ST_ENOMEM;
    if (space->maps.n + more > space->nreach) {
        size_t n = space->maps.room;
        uint64_t *reach = realloc(space->reach, n * sizeof(*reach));
        if (!reach)
            return ST_ENOMEM;
        space->reach = reach;
        space->nreach = n;
    }
    return 0;
}

static void insert(struct dec_space *space, const struct dec_mapping *mapping)
{
    size_t at = above(space, mapping->start);
    memmove(&space->maps.at[at + 1], &space->maps.at[at], (space->maps.n - at) * sizeof(*mapping));
    space->maps.at[at] = *mapping;
    space->maps.n++;
    uint64_t highest = at > 0 ? space->reach[at - 1] : 0;
    for (size_t i = at; i < space->maps.n; i++) {
        if (space->maps.at[i].end > highest)
            highest = space->maps.at[i].end;
        space->reach[i] = highest;
    }
}

static bool stands(const struct dec_mapping *mapping, uint64_t time)
{
    return mapping->since <= time && time < mapping->until;
}

/* The part of `old` within [start, end) goes on from `time`. */
static void keep_part(struct dec_space *space, const struct dec_mapping *old, uint64_t time, uint64_t start,
                      uint64_t end)
{
    struct dec_mapping part = *old;
    if (start >= end)
        return;
    part.start = start;
    part.end = end;
    part.pgoff = old->pgoff + (start - old->start);
    part.since = time;
    part.until = UINT64_MAX;
    insert(space, &part);
}

/* Ends at `time` whatever stands in [start, end); what sticks out on either side stays. The pieces are
 * inserted behind the mapping they come from, so walking down the array does not meet them. */
static void cut(struct dec_space *space, uint64_t time, uint64_t start, uint64_t end)
{
    atomic_store(&space->ends.known, false);
    for (size_t i = above(space, end - 1); i > 0 && space->reach[i - 1] > start; i--) {
        struct dec_mapping *mapping = &space->maps.at[i - 1];
        if (mapping->until != UINT64_MAX || mapping->end <= start)
            continue;
        struct dec_mapping old = *mapping;
        mapping->until = time > mapping->since ? time : mapping->since;
        keep_part(space, &old, time, old.start, start < old.start ? old.start : start);
        keep_part(space, &old, time, end, old.end);
    }
}

static int put(struct dec_space *space, const struct dec_mapping *mapping)
{
    size_t overlapping = 0;
    for (size_t i = above(space, mapping->end - 1); i > 0 && space->reach[i - 1] > mapping->start; i--)
        overlapping += space->maps.at[i - 1].end > mapping->start;
    if (reserve(space, 2 * overlapping + 1))
        return ST_ENOMEM;
    cut(space, mapping->since, mapping->start, mapping->end);
    insert(space, mapping);
    return 0;
}

int dec_space_map(struct dec_space *space, uint64_t time, uint64_t address, uint64_t length, uint64_t pgoff,
                  struct dec_image *image, struct st_error *err)
{
    struct dec_mapping mapping = {
        .start = address, .pgoff = pgoff, .since = time, .until = UINT64_MAX, .image = image};
    if (length == 0)
        return 0;
    mapping.end = length > UINT64_MAX - address ? UINT64_MAX : address + length;
    space->probed |= image && !strncmp(image->path, trampoline, sizeof(trampoline) - 1);
    return put(space, &mapping) ? st_nomem(err, "an address space") : 0;
}

int dec_space_patch(struct dec_space *space, uint64_t time, uint64_t address, struct dec_code_bytes old,
                    struct dec_code_bytes fresh, struct st_error *err)
{
    struct patches *p = &space->patches;
    size_t n = old.n > fresh.n ? old.n : fresh.n;

    if (st_vec_reserve(&p->by_address, n) || st_vec_push(&p->times, time))
        return st_nomem(err, "an address space");
    for (size_t i = 0; i < n; i++)
        p->by_address.at[p->by_address.n++] = (struct patch){.address = address + i,
                                                             .time = time,
                                                             .order = (uint32_t)p->times.n,
                                                             .has_fresh = i < fresh.n,
                                                             .has_old = i < old.n,
                                                             .fresh = i < fresh.n ? fresh.at[i] : 0,
                                                             .old = i < old.n ? old.at[i] : 0};
    atomic_store(&p->sorted, false);
    return 0;
}

static int by_address(const void *x, const void *y)
{
    const struct patch *a = x, *b = y;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static int by_time(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what is worked out when it is first asked for */

/* The patches, sorted. Several threads may look at once. */
static const struct patches *sorted(const struct dec_space *space)
{
    struct patches *p = (struct patches *)(uintptr_t)&space->patches;

    if (!p->by_address.n || atomic_load_explicit(&p->sorted, memory_order_acquire))
        return p;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&p->sorted)) {
        qsort(p->by_address.at, p->by_address.n, sizeof(p->by_address.at[0]), by_address);
        qsort(p->times.at, p->times.n, sizeof(p->times.at[0]), by_time);
        atomic_store_explicit(&p->sorted, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return p;
}

/* Index of the first patch of an address or above that is later than `time`. */
static size_t patch_after(const struct patches *p, uint64_t address, uint64_t time)
{
    size_t low = 0, high = p->by_address.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct patch *at = &p->by_address.at[middle];

        if (at->address < address || (at->address == address && at->time <= time))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t patch_from(const struct patches *p, uint64_t address)
{
    return address ? patch_after(p, address - 1, UINT64_MAX) : 0;
}

bool dec_space_patched(const struct dec_space *space, uint64_t address, uint64_t n)
{
    const struct patches *p = sorted(dec_space_side(space, address));
    size_t first = p->by_address.n ? patch_from(p, address) : 0;

    return first < p->by_address.n && p->by_address.at[first].address - address < n;
}

/* The byte that a mapping has at `address` at a time, if it changed there: what the last change before left,
 * or the next one replaced. */
static void patch_byte(const struct patches *p, const struct dec_mapping *m, uint64_t time, uint64_t address,
                       uint8_t *byte)
{
    size_t i = patch_after(p, address, time), next = i;
    const struct patch *at;

    while (i-- > 0 && p->by_address.at[i].address == address && p->by_address.at[i].time >= m->since)
        if (p->by_address.at[i].has_fresh) {
            *byte = p->by_address.at[i].fresh;
            return;
        }
    at = &p->by_address.at[next];
    if (next < p->by_address.n && at->address == address && at->time < m->until && at->has_old)
        *byte = at->old;
}

/* What changed of the bytes of a mapping. */
static void patch_bytes(const struct dec_space *space, const struct dec_mapping *m, uint64_t time,
                        uint64_t address, uint8_t *bytes, size_t n)
{
    const struct patches *p = sorted(space);
    uint64_t at = time > m->since ? time : m->since;
    size_t i = p->by_address.n ? patch_from(p, address) : 0;

    while (i < p->by_address.n && p->by_address.at[i].address - address < n) {
        uint64_t changed = p->by_address.at[i].address;

        patch_byte(p, m, at, changed, &bytes[changed - address]);
        i = patch_after(p, changed, UINT64_MAX);
    }
}

static uint64_t first_after(const uint64_t *times, size_t n, uint64_t time)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (times[middle] <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n ? times[low] : UINT64_MAX;
}

static bool ended(const struct dec_mapping *mapping)
{
    return mapping->until != UINT64_MAX && mapping->since < mapping->until;
}

static int find_ends(const struct dec_space *space, struct ends *ends)
{
    ends->times.n = 0;
    for (size_t i = 0; i < space->maps.n; i++)
        if (ended(&space->maps.at[i]) && st_vec_push(&ends->times, space->maps.at[i].until))
            return -1;
    if (ends->times.n)
        qsort(ends->times.at, ends->times.n, sizeof(ends->times.at[0]), by_time);
    atomic_store_explicit(&ends->known, true, memory_order_release);
    return 0;
}

static uint64_t next_end(const struct dec_space *space, uint64_t time)
{
    struct ends *ends = (struct ends *)(uintptr_t)&space->ends;
    uint64_t next = UINT64_MAX;

    if (!atomic_load_explicit(&ends->known, memory_order_acquire)) {
        pthread_mutex_lock(&lock);
        int rc = atomic_load(&ends->known) ? 0 : find_ends(space, ends);
        pthread_mutex_unlock(&lock);
        for (size_t i = 0; rc && i < space->maps.n; i++) /* no memory to remember it */
            if (ended(&space->maps.at[i]) && space->maps.at[i].until > time && space->maps.at[i].until < next)
                next = space->maps.at[i].until;
        if (rc)
            return next;
    }
    return first_after(ends->times.at, ends->times.n, time);
}

void dec_space_exec(struct dec_space *space, uint64_t time)
{
    atomic_store(&space->ends.known, false);
    for (size_t i = 0; i < space->maps.n; i++) {
        struct dec_mapping *mapping = &space->maps.at[i];
        if (mapping->until == UINT64_MAX)
            mapping->until = time > mapping->since ? time : mapping->since;
    }
}

int dec_space_fork(struct dec_space *child, const struct dec_space *parent, uint64_t time,
                   struct st_error *err)
{
    if (reserve(child, parent->maps.n))
        return st_nomem(err, "an address space");
    child->probed = parent->probed;
    for (size_t i = 0; i < parent->maps.n; i++) {
        struct dec_mapping mapping = parent->maps.at[i];
        if (!stands(&mapping, time))
            continue;
        mapping.since = time;
        mapping.until = UINT64_MAX;
        insert(child, &mapping);
    }
    return 0;
}

bool dec_space_probed(const struct dec_space *space)
{
    return space->probed;
}

const struct dec_mapping *dec_space_find(const struct dec_space *space, uint64_t time, uint64_t address)
{
    const struct dec_mapping *later = NULL;
    if (space->kernel && address >> 63)
        return dec_space_find(space->kernel, time, address);
    for (size_t i = above(space, address); i > 0 && space->reach[i - 1] > address; i--) {
        const struct dec_mapping *mapping = &space->maps.at[i - 1];
        if (mapping->end <= address || mapping->since >= mapping->until)
            continue;
        if (stands(mapping, time))
            return mapping;
        if (mapping->since > time && (!later || mapping->since < later->since))
            later = mapping;
    }
    return later;
}

const struct dec_space *dec_space_side(const struct dec_space *space, uint64_t address)
{
    return space->kernel && address >> 63 ? space->kernel : space;
}

uint64_t dec_space_stable(const struct dec_space *space, uint64_t time)
{
    const struct patches *p = sorted(space);
    uint64_t patch = first_after(p->times.at, p->times.n, time), end = next_end(space, time);

    return patch < end ? patch : end;
}

void dec_space_symbol(const struct dec_space *space, uint64_t time, uint64_t address, struct dec_place *place)
{
    *place = (struct dec_place){.mapping = dec_space_find(space, time, address)};
    if (!place->mapping)
        return;
    uint64_t inside =
        dec_image_address(place->mapping->image, place->mapping->pgoff + (address - place->mapping->start));
    place->symbol = dec_image_symbol(place->mapping->image, inside);
    if (place->symbol->size == UINT64_MAX) {
        place->start = place->mapping->start;
        place->size = place->mapping->end - place->mapping->start;
        return;
    }
    place->start = address - (inside - place->symbol->start);
    place->size = place->symbol->size;
}

size_t dec_space_read(const struct dec_space *space, uint64_t time, uint64_t address, void *buf, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const struct dec_mapping *mapping = dec_space_find(space, time, address + done);
        if (!mapping)
            break;
        uint64_t skip = address + done - mapping->start;
        size_t part = n - done;
        if (part > mapping->end - mapping->start - skip)
            part = (size_t)(mapping->end - mapping->start - skip);
        size_t got = dec_image_read(mapping->image, mapping->pgoff + skip, (uint8_t *)buf + done, part);
        patch_bytes(dec_space_side(space, address + done), mapping, time, address + done,
                    (uint8_t *)buf + done, got);
        done += got;
        if (got < part)
            break;
    }
    return done;
}
