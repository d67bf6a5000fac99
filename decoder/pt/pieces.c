/* Successive buffers of a ring -> unbroken runs. */
#include "decoder/pt/pieces.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    COPY = 1 << 22, /* bytes that are copied at a time */
    MOST_COPIERS = 16,
};

static const uint8_t psb[16] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

/* Every PSB packet holds 8 bytes whole of those that begin at every eighth offset: those that may be its are
 * looked at. */
size_t pt_find_psb(const uint8_t *bytes, size_t size, size_t from)
{
    uint64_t eight, even, odd;
    memcpy(&even, psb, sizeof(even));
    memcpy(&odd, psb + 1, sizeof(odd));
    for (size_t at = from; at < size && size - at >= sizeof(eight); at += sizeof(eight)) {
        memcpy(&eight, bytes + at, sizeof(eight));
        if (eight != even && eight != odd)
            continue;
        size_t first = at - from < sizeof(eight) ? from : at - sizeof(eight) + 1;
        size_t end = size - at < sizeof(psb) ? size : at + sizeof(psb);
        for (; first + sizeof(psb) <= end; first++) {
            if (!memcmp(bytes + first, psb, sizeof(psb)))
                return first;
        }
    }
    return size;
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

/* A run that is being put together of the pieces from `first` to before `end`, each without its first skip[i]
 * bytes. */
struct joining {
    const struct dec_flow_options *options;

    const struct dec_piece *pieces;

    const size_t *skip;

    size_t first, end;

    const struct pt_run *run;
};

/* The part of it that a thread copies: its bytes from `from` to `to`. */
struct share {
    const struct joining *joining;

    size_t from, to;

    pthread_t thread;

    bool started;
};

static void copy_some(const struct dec_flow_options *options, uint8_t *to, const uint8_t *bytes, size_t size)
{
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < COPY ? size - done : COPY;
        memcpy(to + done, bytes + done, n);
        if (options->forget)
            options->forget(options->forget_ctx, bytes + done, n);
    }
}

static void *copy_share(void *arg)
{
    const struct share *share = arg;
    const struct joining *j = share->joining;
    size_t at = 0; /* of the piece, in the run */
    for (size_t i = j->first, size; i < j->end; i++, at += size) {
        size = j->pieces[i].size - j->skip[i];
        size_t from = share->from > at ? share->from : at;
        size_t to = share->to < at + size ? share->to : at + size;
        if (from < to)
            copy_some(j->options, j->run->owned + from, j->pieces[i].bytes + j->skip[i] + (from - at),
                      to - from);
    }
    return NULL;
}

static void copy_all(const struct joining *j)
{
    struct share shares[MOST_COPIERS];
    size_t n = j->run->size / COPY + 1, size = j->run->size;
    if (n > j->options->threads)
        n = j->options->threads ? j->options->threads : 1;
    if (n > MOST_COPIERS)
        n = MOST_COPIERS;
    for (size_t i = n; i > 0; i--) { /* the first here, and those for which there is no thread */
        struct share *share = &shares[i - 1];
        *share = (struct share){.joining = j, .from = size / n * (i - 1), .to = i == n ? size : size / n * i};
        share->started = i > 1 && pthread_create(&share->thread, NULL, copy_share, share) == 0;
        if (!share->started)
            copy_share(share);
    }
    for (size_t i = 0; i < n; i++) {
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
    }
}

static int add_run(const struct joining *joining, enum dec_gap before, pt_runs *runs)
{
    struct joining j = *joining;
    struct pt_run run = {.before = before};
    j.run = &run;
    for (size_t i = j.first; i < j.end; i++)
        run.size += j.pieces[i].size - j.skip[i];
    if (run.size == 0)
        return 0;
    if (j.end - j.first == 1) {
        run.bytes = j.pieces[j.first].bytes + j.skip[j.first];
        return st_vec_push(runs, run);
    }
    run.bytes = run.owned = room_for(run.size);
    if (!run.owned)
        return -1;
    copy_all(&j);
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

int pt_runs_join(const struct dec_flow_options *options, const struct dec_piece *pieces, size_t npieces,
                 pt_runs *runs, struct st_error *err)
{
    size_t *skip = calloc(npieces + 1, sizeof(*skip));
    struct joining j = {.options = options, .pieces = pieces, .skip = skip};
    enum dec_gap before = 0;
    int rc = skip ? 0 : -1;
    for (size_t i = 1; rc == 0 && i < npieces; i++) {
        enum dec_gap gap = seam(pieces, i, options->snapshot, &skip[i]);
        if (!gap)
            continue;
        j.end = i;
        rc = add_run(&j, before, runs);
        before = gap;
        j.first = i;
    }
    j.end = npieces;
    if (rc == 0 && npieces)
        rc = add_run(&j, before, runs);
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
