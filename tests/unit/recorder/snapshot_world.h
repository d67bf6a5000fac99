/* The snapshot of a made-up source: written, and read back with our own reader. */
#ifndef ST_UNIT_RECORDER_SNAPSHOT_WORLD_H
#define ST_UNIT_RECORDER_SNAPSHOT_WORLD_H

#include "perfdata/reader.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the source. */
enum {
    PMU = 250,
    ASKED = 5000,
    DONE = 6000,
};

struct world {
    char folder[64];

    struct rec_clock clock;

    struct rec_store *store;

    struct rec_sideband *sideband;

    struct rec_kallsyms *kallsyms;

    struct rec_capture capture;

    struct st_target target;

    pid_t self;

    struct st_stall_record stall;

    struct rec_room *room; /* wanted */
};

/* What came out. */
struct found {
    unsigned auxtrace, info, time_conv, switches, stalls, names, meta, vdsos;

    uint64_t last; /* time of the side-band */

    bool in_order;

    unsigned char ring0[72];

    uint64_t ring0_offset;

    char pairs[65536]; /* meta, NULs as newlines */

    char symbols[512];

    struct st_vdso_record vdso;

    uint64_t vdso_magic;

    struct st_stall_record stall;
};

extern bool frozen; /* the source is */

extern const struct rec_source_ops fake;

/* Of a source that fails. */
int no_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err);

/* cmocka's; *state is the world. */
int set_up(void **state);
int tear_down(void **state);

/* The sample of w->stall, in the buffer. */
struct perf_event_header *make_sample(const struct world *w, uint64_t buffer[1024], uint64_t time);

/* Sets w->stall, and stores it. */
void add_stall(struct world *w, uint64_t time);

void capture(struct world *w);

int write_it(struct world *w, const char *path, struct st_error *err);

/* For pd_reader_each: ctx is a struct found. */
int take(void *ctx, const struct pd_record *r, struct st_error *err);

void expect_pair(const struct found *f, const char *pair);

#endif
