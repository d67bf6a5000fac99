/* Successive buffers of a ring -> unbroken runs. */
#include "decoder/flow_pieces.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint8_t psb[16] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

size_t pt_find_psb(const uint8_t *bytes, size_t size, size_t from)
{
    const uint8_t *found = from < size ? memmem(bytes + from, size - from, psb, sizeof(psb)) : NULL;
    return found ? (size_t)(found - bytes) : size;
}

/* How many bytes at the start of `next` are the end of `last`: the longest such piece that holds a PSB, whose
 * time makes it unlike any other. 0: none. */
static size_t overlap(const struct dec_piece *last, const struct dec_piece *next)
{
    size_t mark = pt_find_psb(next->bytes, next->size, 0);
    if (mark == next->size)
        return 0;
    for (size_t at = pt_find_psb(last->bytes, last->size, 0); at < last->size;
         at = pt_find_psb(last->bytes, last->size, at + 1)) {
        if (at < mark)
            continue;
        size_t size = last->size - (at - mark);
        if (size <= next->size && memcmp(last->bytes + (at - mark), next->bytes, size) == 0)
            return size;
    }
    return 0;
}

/* Memory for a run; a long one in large pages, else it is thousands of page faults. */
static uint8_t *room_for(size_t size)
{
    const size_t large = 1 << 21;
    if (size < large)
        return malloc(size);
    void *room;
    if (posix_memalign(&room, large, size))
        return NULL;
    madvise(room, size, MADV_HUGEPAGE);
    return room;
}

/* The pieces from `first` to before `end`, each without its first skip[i] bytes, become one run. */
static int add_run(const struct dec_piece *pieces, const size_t *skip, size_t first, size_t end,
                   enum dec_gap before, pt_runs *runs)
{
    struct pt_run run = {.before = before};
    size_t filled = 0;
    for (size_t i = first; i < end; i++)
        run.size += pieces[i].size - skip[i];
    if (run.size == 0)
        return 0;
    if (end - first == 1) {
        run.bytes = pieces[first].bytes + skip[first];
        return st_vec_push(runs, run);
    }
    run.bytes = run.owned = room_for(run.size);
    if (!run.owned)
        return -1;
    for (size_t i = first; i < end; i++) {
        memcpy(run.owned + filled, pieces[i].bytes + skip[i], pieces[i].size - skip[i]);
        filled += pieces[i].size - skip[i];
    }
    if (st_vec_push(runs, run) == 0)
        return 0;
    free(run.owned);
    return -1;
}

/* Why piece i does not join the one before it; 0: it does, without its first *skip bytes. */
static enum dec_gap seam(const struct dec_piece *pieces, size_t i, bool snapshot, size_t *skip)
{
    const struct dec_piece *last = &pieces[i - 1], *piece = &pieces[i];
    *skip = 0;
    if (snapshot) {
        *skip = overlap(last, piece);
        return *skip ? 0 : DEC_GAP_OVERWRITTEN;
    }
    if (piece->truncated)
        return DEC_GAP_LOST;
    return piece->offset == last->offset + last->size ? 0 : DEC_GAP_LOST;
}

int pt_runs_join(const struct dec_piece *pieces, size_t npieces, bool snapshot, pt_runs *runs,
                 struct st_error *err)
{
    size_t *skip = calloc(npieces + 1, sizeof(*skip));
    size_t first = 0;
    enum dec_gap before = 0;
    int rc = skip ? 0 : -1;
    for (size_t i = 1; rc == 0 && i < npieces; i++) {
        enum dec_gap gap = seam(pieces, i, snapshot, &skip[i]);
        if (!gap)
            continue;
        rc = add_run(pieces, skip, first, i, before, runs);
        before = gap;
        first = i;
    }
    if (rc == 0 && npieces)
        rc = add_run(pieces, skip, first, npieces, before, runs);
    free(skip);
    if (rc == 0)
        return 0;
    pt_runs_free(runs);
    return st_nomem(err, "the trace of a ring");
}

void pt_runs_free(pt_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        free(runs->at[i].owned);
    st_vec_free(runs);
}
