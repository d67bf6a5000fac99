/* grow_trace FROM TO TIMES SECONDS: the records of a perf.data (file form, not compressed), TIMES times one
 * after the other, each SECONDS or a little more behind the one before: the side-band and the trace of a
 * longer recording of the same again and again.
 *
 * TSC packets and the times of records are moved on together, by as many crystal ticks as the other timing
 * packets do not show (a TMA packet has 16 bits of them). */
#include "decoder/pt/fast_packet.h"
#include "decoder/pt/pieces.h"
#include "perfdata/format.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    RINGS = 256,
    TIME_BEFORE_END = 24, /* of a record of -a with its times, threads, CPUs and ids */
    CRYSTAL = 1 << 16,
};

struct grower {
    uint8_t *map; /* a private copy of the file: it is changed */

    size_t size;

    uint64_t begin, end; /* of the records */

    uint64_t tsc, ns; /* added each time */

    uint64_t bytes[RINGS]; /* of trace in each ring: added to the offsets */

    FILE *to;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "grow_trace: %s: %s\n", what, why);
    exit(1);
}

/* Adds to each TSC packet of a piece, from its first PSB on. */
static void move_trace(const struct grower *g, uint8_t *bytes, size_t size)
{
    for (size_t at = pt_find_psb(bytes, size, 0); at < size;) {
        size_t n = packet_size(bytes + at, bytes + size);
        if (n == 0) {
            at = pt_find_psb(bytes, size, at + 1);
            continue;
        }
        if (bytes[at] == PACKET_TSC) {
            uint64_t tsc = packet_number(bytes + at + 1, 7) + g->tsc;
            memcpy(bytes + at + 1, &tsc, 7);
        }
        at += n;
    }
}

/* How many bytes each ring has, and the clock. */
static void look(struct grower *g, uint64_t *priv)
{
    for (uint64_t at = g->begin; at < g->end;) {
        const struct perf_event_header *h = (const void *)(g->map + at);
        if (h->size < sizeof(*h))
            die("the records", "one is too short");
        if (h->type == PD_RECORD_AUXTRACE_INFO)
            memcpy(priv, ((const struct pd_auxtrace_info *)(const void *)h)->priv,
                   (PD_PT_PRIV_MAX) * sizeof(*priv));
        if (h->type == PD_RECORD_AUXTRACE) {
            const struct pd_auxtrace *aux = (const void *)h;
            if (aux->idx >= RINGS)
                die("the records", "too many rings");
            g->bytes[aux->idx] = aux->offset + aux->size;
            at += aux->size;
        }
        at += h->size;
    }
}

/* Adds to the time of each record that has one: those of the kernel. */
static void move_all(const struct grower *g)
{
    for (uint64_t at = g->begin; at < g->end;) {
        struct perf_event_header *h = (void *)(g->map + at);
        uint64_t time;
        uint8_t *stamp = g->map + at + h->size - TIME_BEFORE_END;
        if (h->type == PD_RECORD_AUXTRACE) {
            struct pd_auxtrace *aux = (void *)h;
            move_trace(g, g->map + at + h->size, aux->size);
            aux->offset += g->bytes[aux->idx];
            at += aux->size;
        } else if (h->type < 64 && h->size >= sizeof(*h) + 32) {
            memcpy(&time, stamp, sizeof(time));
            time += time ? g->ns : 0;
            memcpy(stamp, &time, sizeof(time));
        }
        at += h->size;
    }
}

static void write_all(const struct grower *g, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, g->to) != size)
        die("writing", "it failed");
}

/* What lies behind the records moves on, as its table says. */
static void write_file(struct grower *g, unsigned times)
{
    struct pd_file_header header;
    uint64_t more = (times - 1) * (g->end - g->begin);
    memcpy(&header, g->map, sizeof(header));
    header.data.size += more;
    write_all(g, &header, sizeof(header));
    write_all(g, g->map + sizeof(header), g->begin - sizeof(header));
    for (unsigned i = 0; i < times; i++) {
        write_all(g, g->map + g->begin, g->end - g->begin);
        move_all(g);
    }
    struct pd_file_section *table = (void *)(g->map + g->end);
    unsigned n = 0;
    for (unsigned i = 0; i < 4; i++)
        n += (unsigned)__builtin_popcountll(header.features[i]);
    for (unsigned i = 0; i < n; i++)
        table[i].offset += more;
    write_all(g, g->map + g->end, g->size - g->end);
    if (fclose(g->to))
        die("writing", "it failed");
}

int main(int argc, char **argv)
{
    struct grower g = {0};
    struct stat st;
    uint64_t priv[PD_PT_PRIV_MAX] = {0};
    int fd = argc == 5 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (argc != 5)
        die("usage", "grow_trace FROM TO TIMES SECONDS");
    if (fd < 0 || fstat(fd, &st))
        die(argv[1], "it cannot be read");
    g.size = (size_t)st.st_size;
    g.map = mmap(NULL, g.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    g.to = fopen(argv[2], "we");
    if (g.map == MAP_FAILED || !g.to)
        die(argv[2], "it cannot be written");
    const struct pd_file_header *header = (const void *)g.map;
    if (g.size < sizeof(*header) || memcmp(header->magic, "PERFILE2", 8) || header->size != sizeof(*header) ||
        header->data.offset + header->data.size > g.size)
        die(argv[1], "it is no perf.data in file form");
    g.begin = header->data.offset;
    g.end = g.begin + header->data.size;
    look(&g, priv);
    if (!priv[PD_PT_TIME_MULT] || !priv[PD_PT_TSC_CTC_D])
        die(argv[1], "its clock is not known");
    uint64_t step = CRYSTAL * priv[PD_PT_TSC_CTC_N] / priv[PD_PT_TSC_CTC_D];
    double ns = strtod(argv[4], NULL) * 1e9;
    double tsc = ns * (double)((uint64_t)1 << priv[PD_PT_TIME_SHIFT]) / (double)priv[PD_PT_TIME_MULT];
    g.tsc = ((uint64_t)tsc / step + 1) * step;
    g.ns = (uint64_t)((unsigned __int128)g.tsc * priv[PD_PT_TIME_MULT] >> priv[PD_PT_TIME_SHIFT]);
    write_file(&g, (unsigned)strtoul(argv[3], NULL, 10));
    return 0;
}
