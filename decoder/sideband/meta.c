/* What the recorder says of the snapshot as a whole (base/stall_record.h, ST_META_EVENT_NAME). */
#include "base/bisect.h"
#include "decoder/sideband/sideband_impl.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad(const struct pd_record *r, const char *why, struct st_error *err)
{
    return st_fail(err, ST_EBADFILE, "%s: at offset 0x%" PRIx64 ": %s of %s: %s", r->file, r->offset,
                   pd_record_name(r->header->type), ST_META_EVENT_NAME, why);
}

static int take_strings(struct sb_context *c, const struct pd_record *r, const struct pd_sample *sample,
                        struct st_error *err)
{
    struct st_meta_record head;
    const char *text = (const char *)sample->raw + sizeof(head);
    size_t n;

    memcpy(&head, sample->raw, sizeof(head));
    n = head.n;
    if (n > sample->raw_size - sizeof(head) || (n && text[n - 1]))
        return bad(r, "strings that end too late", err);
    for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
        const char *equals = strchr(text + at, '=');

        if (equals && st_vec_push(&c->sb->meta, (struct dec_meta){text + at, equals + 1, c->sb->meta.n}))
            return st_nomem(err, "the snapshot's description");
    }
    return 0;
}

bool sb_is_narrow(uint64_t address)
{
    return !(address >> 32);
}

/* The kernel has a vdso for 64-bit programs and another for 32-bit ones. */
static bool is_of_32_bits(const uint8_t *bytes, uint64_t size, uint64_t address)
{
    if (size > EI_CLASS && !memcmp(bytes, ELFMAG, SELFMAG))
        return bytes[EI_CLASS] == ELFCLASS32;
    return sb_is_narrow(address);
}

static int take_vdso(struct sb_context *c, const struct pd_record *r, const struct pd_sample *sample,
                     struct st_error *err)
{
    struct st_vdso_record head;
    struct sb_vdso vdso;
    uint8_t *bytes;
    int rc;

    if (sample->raw_size < sizeof(head))
        return bad(r, "a vdso that is too short", err);
    memcpy(&head, sample->raw, sizeof(head));
    if (head.size > sample->raw_size - sizeof(head))
        return bad(r, "a vdso that ends too late", err);
    bytes = malloc((size_t)head.size + 1);
    if (!bytes)
        return st_nomem(err, "the vdso");
    memcpy(bytes, (const char *)sample->raw + sizeof(head), head.size);
    vdso.pid = (int32_t)head.pid;
    vdso.address = head.address;
    vdso.narrow = is_of_32_bits(bytes, head.size, head.address);
    rc = dec_images_add_bytes(c->images, vdso.narrow ? "[vdso32]" : "[vdso]", bytes, head.size, &vdso.image,
                              err);
    if (rc)
        return rc;
    return st_vec_push(&c->vdsos, vdso) ? st_nomem(err, "the vdso") : 0;
}

int sb_meta_sample(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    struct pd_sample sample;
    uint32_t magic = 0;
    int rc = pd_record_sample(r, &sample, err);

    if (rc)
        return rc;
    if (sample.raw_size >= sizeof(struct st_meta_record))
        memcpy(&magic, sample.raw, sizeof(magic));
    if (magic == ST_META_MAGIC)
        return take_strings(c, r, &sample, err);
    if (magic == ST_VDSO_MAGIC)
        return take_vdso(c, r, &sample, err);
    c->sb->skipped += magic != ST_ROOM_MAGIC;
    return 0;
}

/* One that several processes share is there once, for one of them; of two kinds, the one that a program with
 * such addresses has. */
struct dec_image *sb_find_vdso(const struct sb_context *c, int32_t pid, uint64_t address)
{
    for (size_t i = 0; i < c->vdsos.n; i++)
        if (c->vdsos.at[i].pid == pid && c->vdsos.at[i].address == address)
            return c->vdsos.at[i].image;
    for (size_t i = 0; i < c->vdsos.n; i++)
        if (c->vdsos.at[i].narrow == sb_is_narrow(address))
            return c->vdsos.at[i].image;
    return NULL;
}

static int compare_key(const struct dec_meta *meta, const char *key, size_t n)
{
    size_t own = (size_t)(meta->value - meta->text) - 1;
    int order = memcmp(meta->text, key, own < n ? own : n);

    return order ? order : (own > n) - (own < n);
}

static int by_key(const void *a, const void *b)
{
    const struct dec_meta *x = a, *y = b;
    int order = compare_key(x, y->text, (size_t)(y->value - y->text) - 1);

    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static int sort_meta(struct dec_sideband *sb)
{
    for (size_t i = 0; i < sb->meta.n; i++)
        if (st_vec_push(&sb->meta_by_key, sb->meta.at[i]))
            return -1;
    if (sb->meta_by_key.n)
        qsort(sb->meta_by_key.at, sb->meta_by_key.n, sizeof(sb->meta_by_key.at[0]), by_key);
    return 0;
}

const char *dec_sideband_meta(const struct dec_sideband *sb, const char *key)
{
    size_t n = strlen(key);
    size_t first = st_bisect(i, sb->meta_by_key.n, compare_key(&sb->meta_by_key.at[i], key, n) < 0);

    return first < sb->meta_by_key.n && !compare_key(&sb->meta_by_key.at[first], key, n)
               ? sb->meta_by_key.at[first].value
               : NULL;
}

int64_t dec_sideband_meta_number(const struct dec_sideband *sb, const char *key, int64_t otherwise)
{
    const char *text = dec_sideband_meta(sb, key);
    char *end;
    int64_t number;

    if (!text)
        return otherwise;
    number = strtoll(text, &end, 10);
    return end == text || *end ? otherwise : number;
}

/* "tid=T cpu=C since=TIME offset=BYTES ..." */
static void apply_ring(struct sb_context *c, struct dec_ring *ring, const char *text)
{
    struct dec_thread *thread;
    uint64_t since, offset;
    int tid, cpu;

    if (sscanf(text, "tid=%d cpu=%d since=%" SCNu64 " offset=%" SCNu64, &tid, &cpu, &since, &offset) != 4)
        return;
    ring->overwritten = offset > 0;
    thread = tid > 0 ? dec_sideband_thread(c->sb, tid, -1, since) : NULL;
    if (thread && !thread->traced) {
        thread->traced = true;
        thread->traced_since = since;
    }
}

/* Records before a time did not fit into the recorder's memory. */
static int apply_dropped(struct sb_context *c, const char *key, const char *what)
{
    struct dec_notice n = {.time = 0, .tid = -1, .cpu = -1, .lost = true, .name = "lost"};
    int64_t since = dec_sideband_meta_number(c->sb, key, 0);

    if (since <= 0)
        return 0;
    n.time = c->sb->first;
    n.until = (uint64_t)since;
    snprintf(n.detail, sizeof(n.detail), "older %s were dropped for room", what);
    if (st_vec_push(&c->sb->notices, n))
        return -1;
    /* They are in the order of their times. */
    for (size_t i = c->sb->notices.n - 1; i > 0 && c->sb->notices.at[i - 1].time > n.time; i--) {
        c->sb->notices.at[i] = c->sb->notices.at[i - 1];
        c->sb->notices.at[i - 1] = n;
    }
    return 0;
}

static int take_pauses(struct dec_sideband *sb)
{
    uint64_t last = 0;

    for (size_t i = 0; i < sb->meta.n; i++) {
        struct dec_pause p;

        if (strncmp(sb->meta.at[i].text, "pause.", 6) != 0 ||
            sscanf(sb->meta.at[i].value, "stopped=%" SCNu64 " done=%" SCNu64 " resumed=%" SCNu64, &p.stopped,
                   &p.done, &p.resumed) != 3 ||
            p.done < last || p.stopped > p.done || p.done > p.resumed)
            continue;
        last = p.resumed;
        if (st_vec_push(&sb->pauses, p))
            return -1;
    }
    return 0;
}

/* Threads that had no ring, as those of all may take no more than they do. */
static void take_ringless(struct dec_sideband *sb)
{
    for (size_t i = 0; i < sb->meta.n; i++) {
        uint64_t since, until;
        int32_t tid, pid;
        struct dec_thread *t;

        if (sscanf(sb->meta.at[i].text,
                   "no_ring.%" SCNd32 "=pid=%" SCNd32 " since=%" SCNu64 " until=%" SCNu64, &tid, &pid, &since,
                   &until) != 4)
            continue;
        t = tid > 0 ? dec_sideband_thread(sb, tid, -1, until) : NULL;
        if (!t || t->process->pid != pid)
            continue;
        t->ringless = true;
        t->ring_since = since;
        t->ring_until = until;
    }
}

/* Code that the recorder did not copy, or whose names it could not take over. */
static int take_missing(struct dec_sideband *sb)
{
    for (size_t i = 0; i < sb->meta.n; i++) {
        struct dec_notice n = {.time = sb->last, .cpu = -1, .lost = true, .name = "no names"};

        if (sscanf(sb->meta.at[i].text, "uncopied.%" SCNd32 "=", &n.tid) == 1)
            n.name = dec_gap_name(DEC_GAP_NO_IMAGE);
        else if (sscanf(sb->meta.at[i].text, "unnamed.%" SCNd32 "=", &n.tid) != 1)
            continue;
        snprintf(n.detail, sizeof(n.detail), "%s", sb->meta.at[i].value);
        if (st_vec_push(&sb->notices, n))
            return -1;
    }
    return 0;
}

int sb_apply_meta(struct sb_context *c)
{
    struct dec_sideband *sb = c->sb;
    int64_t done;
    char key[32];

    if (sort_meta(sb))
        return -1;
    done = dec_sideband_meta_number(sb, "freeze_done", 0);
    for (size_t i = 0; i < sb->rings.n; i++) {
        struct dec_ring *ring = &sb->rings.at[i];
        const char *text;

        ring->overwritten = sb->snapshot && ring->pieces.at[0].offset > 0;
        snprintf(key, sizeof(key), "ring.%u", ring->idx);
        text = dec_sideband_meta(sb, key);
        if (text)
            apply_ring(c, ring, text);
    }
    if (take_pauses(sb) || (sb->sampled && sb_sample_rings(c)))
        return -1;
    if (done > 0 && sb->last)
        sb->last = (uint64_t)done > sb->last ? (uint64_t)done : sb->last;
    take_ringless(sb);
    if (take_missing(sb) || apply_dropped(c, "switches_since", "context switches"))
        return -1;
    if (apply_dropped(c, "stalls_since", "stall records"))
        return -1;
    return apply_dropped(c, "marks_since", "marks");
}
