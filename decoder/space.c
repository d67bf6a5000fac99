/* Address spaces over time: mappings sorted by start, each with the span of time it stood. */
#include "decoder/space.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

struct dec_space {
    const struct dec_space *kernel;

    ST_VEC(struct dec_mapping) maps; /* by start, then since */

    uint64_t *reach; /* for each of maps: the highest end up to and with it */

    size_t nreach;

    ST_VEC(uint8_t *) patches;
};

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
    for (size_t i = 0; i < space->patches.n; i++)
        free(space->patches.at[i]);
    st_vec_free(&space->patches);
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
    part.patch = old->patch ? old->patch + (start - old->start) : NULL;
    part.since = time;
    part.until = UINT64_MAX;
    insert(space, &part);
}

/* Ends at `time` whatever stands in [start, end); what sticks out on either side stays. The pieces are
 * inserted behind the mapping they come from, so walking down the array does not meet them. */
static void cut(struct dec_space *space, uint64_t time, uint64_t start, uint64_t end)
{
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
    return put(space, &mapping) ? st_nomem(err, "an address space") : 0;
}

/* A copy of the bytes, kept with the space; NULL: no memory. */
static uint8_t *keep_bytes(struct dec_space *space, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n);
    if (copy && !st_vec_push(&space->patches, copy))
        return memcpy(copy, bytes, n);
    free(copy);
    return NULL;
}

/* The mappings that stand there at `time` have these bytes from then on; with `first` those that were never
 * patched have them from their beginning on. */
static int overlay(struct dec_space *space, uint64_t time, bool first, uint64_t address,
                   struct dec_code_bytes bytes)
{
    uint8_t *copy = bytes.n ? keep_bytes(space, bytes.at, bytes.n) : NULL;
    if (bytes.n && !copy)
        return ST_ENOMEM;
    for (size_t done = 0, part; done < bytes.n; done += part) {
        const struct dec_mapping *found = dec_space_find(space, time, address + done);
        if (!found)
            break;
        struct dec_mapping piece = *found;
        part = bytes.n - done;
        if (part > piece.end - (address + done))
            part = (size_t)(piece.end - (address + done));
        if (first && piece.patch)
            continue;
        piece.pgoff += address + done - piece.start;
        piece.start = address + done;
        piece.end = piece.start + part;
        piece.since = first || piece.since > time ? piece.since : time;
        piece.until = UINT64_MAX;
        piece.patch = copy + done;
        if (put(space, &piece))
            return ST_ENOMEM;
    }
    return 0;
}

int dec_space_patch(struct dec_space *space, uint64_t time, uint64_t address, struct dec_code_bytes old,
                    struct dec_code_bytes fresh, struct st_error *err)
{
    int rc = overlay(space, time, true, address, old);
    if (!rc)
        rc = overlay(space, time, false, address, fresh);
    return rc ? st_nomem(err, "an address space") : 0;
}

void dec_space_exec(struct dec_space *space, uint64_t time)
{
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
    uint64_t until = UINT64_MAX;
    for (size_t i = 0; i < space->maps.n; i++) {
        const struct dec_mapping *mapping = &space->maps.at[i];
        if (mapping->until > time && mapping->until < until && mapping->since < mapping->until)
            until = mapping->until;
    }
    return until;
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
        size_t got = part;
        if (mapping->patch)
            memcpy((uint8_t *)buf + done, mapping->patch + skip, part);
        else
            got = dec_image_read(mapping->image, mapping->pgoff + skip, (uint8_t *)buf + done, part);
        done += got;
        if (got < part)
            break;
    }
    return done;
}
