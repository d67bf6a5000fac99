/* When each ring stopped, and with how much behind the stall: meta.ring_stops. */
#include "base/bisect.h"
#include "decoder/model/db/db_impl.h"
#include "decoder/pt/config.h"
#include "decoder/pt/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a ring holds of after a time. */
struct rest {
    bool known; /* its packets tell the time */

    uint64_t bytes; /* at the most: from the last packet on that tells a time before it */

    uint64_t last; /* perf clock: the last time that a packet tells */
};

static uint64_t now_of(const struct flow_times *times)
{
    return dec_clock_ns(&times->config->clock, times->tsc);
}

/* Reads the packets from the PSB at `begin` on. False: that PSB's own time is past `from`, or it has none. */
static int read_rest(const struct dec_pt_config *config, const struct dec_piece *piece, uint64_t begin,
                     uint64_t from, struct rest *rest, bool *before, struct st_error *err)
{
    struct flow_times times;
    struct packet_time at;
    struct pt_config pt;
    uint64_t serial = 0;
    int rc;

    pt_configure(&pt, config, piece->bytes + begin, piece->size - begin);
    rc = times_init(&times, config, &pt, err);
    if (rc)
        return rc;
    times_at_psb(&times, 0, &at);
    *before = at.known && now_of(&times) < from;
    rest->known = rest->known || at.known;
    rest->bytes = piece->size - begin;
    while (times.offset != UINT64_MAX) {
        uint64_t here = times.offset;

        times_at(&times, here, &at);
        if (at.known && at.serial != serial && now_of(&times) < from)
            rest->bytes = piece->size - begin - here;
        serial = at.serial;
        times_at(&times, here + 1, &at);
    }
    if (at.known)
        rest->last = now_of(&times);
    if (rest->last < from)
        rest->bytes = 0;
    times_free(&times);
    return 0;
}

/* PSB by PSB from the ring's end back to one of before `from`: little lies behind it. */
static int find_rest(const struct dec_pt_config *config, const struct dec_piece *piece, uint64_t from,
                     struct rest *rest, struct st_error *err)
{
    struct pt_packet_decoder *decoder;
    struct pt_config pt;
    bool before = false;
    int rc = 0;

    *rest = (struct rest){0};
    pt_configure(&pt, config, piece->bytes, piece->size);
    decoder = pt_pkt_alloc_decoder(&pt);
    if (!decoder)
        return st_nomem(err, "libipt's packet decoder");
    while (!rc && !before && pt_pkt_sync_backward(decoder) >= 0) {
        uint64_t begin = 0;

        if (pt_pkt_get_sync_offset(decoder, &begin) < 0)
            break;
        rc = read_rest(config, piece, begin, from, rest, &before, err);
    }
    pt_pkt_free_decoder(decoder);
    return rc;
}

typedef ST_VEC(const struct dec_ring *) ring_list; /* by idx, then as in the file */

static int by_idx(const void *a, const void *b)
{
    const struct dec_ring *const *x = a, *const *y = b;

    if ((*x)->idx != (*y)->idx)
        return (*x)->idx < (*y)->idx ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

static int sort_rings(const struct dec_sideband *sb, ring_list *list)
{
    for (size_t i = 0; i < sb->rings.n; i++)
        if (sb->rings.at[i].pieces.n && st_vec_push(list, &sb->rings.at[i]))
            return -1;
    if (list->n)
        qsort(list->at, list->n, sizeof(list->at[0]), by_idx);
    return 0;
}

static const struct dec_ring *ring_of(const ring_list *list, unsigned idx)
{
    size_t first = st_bisect(i, list->n, list->at[i]->idx < idx);

    return first < list->n && list->at[first]->idx == idx ? list->at[first] : NULL;
}

static uint64_t number_in(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void put_number(FILE *out, const char *key, bool known, int64_t value)
{
    if (known)
        fprintf(out, ",\"%s\":%" PRId64, key, value);
    else
        fprintf(out, ",\"%s\":null", key);
}

/* "tid=T cpu=C ... in_kernel=K stopped=TIME" of a ring (NULL: it has no byte) -> {"tid":...}. */
static int put_ring(struct dec_model *m, FILE *out, const struct dec_ring *ring, const char *text,
                    uint64_t held, struct st_error *err)
{
    bool in_kernel = number_in(text, " in_kernel=");
    uint64_t stopped = number_in(text, " stopped=");
    struct rest rest = {.known = true};
    int tid, cpu, rc = 0;

    if (sscanf(text, "tid=%d cpu=%d", &tid, &cpu) != 2)
        return 0;
    if (ring && m->sb->has_pt)
        rc = find_rest(&m->sb->pt, &ring->pieces.at[ring->pieces.n - 1], held, &rest, err);
    if (rc)
        return rc;
    if (in_kernel) /* its last packet tells when */
        stopped = rest.last > held ? rest.last : rest.known ? held : 0;
    fprintf(out, "%s{\"in_kernel\":%d", ftell(out) > 1 ? "," : "", in_kernel);
    put_number(out, "tid", tid > 0, tid);
    put_number(out, "cpu", cpu >= 0, cpu);
    put_number(out, "after_ns", stopped >= held, (int64_t)(stopped - held));
    put_number(out, "after_bytes", rest.known, (int64_t)rest.bytes);
    fputc('}', out);
    return 0;
}

int model_write_stops(struct dec_model *m, struct tdb_writer *w, uint64_t held, struct st_error *err)
{
    char *json = NULL;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    ring_list rings = {0};
    unsigned idx;
    int rc = 0;

    if (!out)
        return st_nomem(err, "the rings' stops");
    if (sort_rings(m->sb, &rings))
        rc = st_nomem(err, "the rings' stops");
    fputc('[', out);
    for (size_t i = 0; i < m->sb->meta.n && !rc; i++)
        if (sscanf(m->sb->meta.at[i].text, "ring.%u=", &idx) == 1 &&
            strstr(m->sb->meta.at[i].value, " stopped="))
            rc = put_ring(m, out, ring_of(&rings, idx), m->sb->meta.at[i].value, held, err);
    fputc(']', out);
    st_vec_free(&rings);
    if (fclose(out) && !rc)
        rc = st_nomem(err, "the rings' stops");
    if (!rc && size > 2)
        rc = tdb_set_meta_text(w, "ring_stops", json, err);
    free(json);
    return rc;
}
