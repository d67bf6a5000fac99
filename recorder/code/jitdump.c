/* jit-PID.dump. */
#include "recorder/code/jitdump.h"
#include "recorder/code/proc_maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    JITDUMP_MAGIC = 0x4A695444,
    CODE_LOAD = 0,
    CODE_MOVE = 1,
    HEADER = 40,        /* bytes of the file's header, at least */
    RECORD = 16,        /* id, size, time */
    LOAD = RECORD + 40, /* pid, tid, vma, address, size, index; the name follows */
    MOVE = RECORD + 48, /* pid, tid, vma, old address, new address, size, index */
    LONGEST = 4096,     /* of what is read of a record */
    WINDOW = 256 * 1024
};

/* What was made, or moved to another place. */
struct code {
    uint64_t start, size, index;

    size_t name; /* in `names`; NONE: of a move, which has that of what it moves */

    size_t order; /* of the records */
};

enum { NONE = -1 };

/* A part of the file in memory. */
struct window {
    int fd;

    uint64_t at;

    size_t n;

    unsigned char bytes[WINDOW];
};

struct reader {
    struct rec_perf_map *map;

    ST_VEC(struct code) codes;

    ST_VEC(char) names; /* of those within the map's ranges */

    struct window file;

    uint64_t size; /* of the file, when reading began */
};

static uint64_t u64(const unsigned char *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static uint32_t u32(const unsigned char *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

/* `n` bytes of the file at an offset, n <= LONGEST; NULL where it ends before. */
static const unsigned char *look(struct window *w, uint64_t at, size_t n)
{
    if (at < w->at || at - w->at > w->n || w->n - (at - w->at) < n) {
        ssize_t got = at > INT64_MAX ? -1 : pread(w->fd, w->bytes, sizeof(w->bytes), (off_t)at);

        w->at = at;
        w->n = got > 0 ? (size_t)got : 0;
    }
    return w->n - (at - w->at) < n ? NULL : w->bytes + (at - w->at);
}

/* 0, 1 when there is no room for more, -1 when memory ran out. */
static int add_code(struct reader *r, struct code c)
{
    c.order = r->codes.n;
    if (r->codes.n < REC_PERF_MOST_SYMBOLS)
        return st_vec_push(&r->codes, c);
    r->map->cut = REC_PERF_CUT_NAMES;
    return 1;
}

static int add_load(struct reader *r, const unsigned char *record, size_t n)
{
    struct code c = {u64(record + RECORD + 16), u64(record + RECORD + 24), u64(record + RECORD + 32),
                     r->names.n, 0};
    const char *name = (const char *)record + LOAD;
    size_t length = strnlen(name, n - LOAD);

    if (!length)
        return 0;
    if (length + 1 > REC_PERF_MOST_NAMES - r->names.n) {
        r->map->cut = REC_PERF_CUT_NAMES;
        return 1;
    }
    if (st_vec_reserve(&r->names, length + 1))
        return -1;
    memcpy(r->names.at + c.name, name, length);
    r->names.at[c.name + length] = '\0';
    r->names.n += length + 1;
    return add_code(r, c);
}

static int add_move(struct reader *r, const unsigned char *record)
{
    const struct code c = {u64(record + RECORD + 24), u64(record + RECORD + 32), u64(record + RECORD + 40),
                           (size_t)NONE, 0};

    return add_code(r, c);
}

/* The record at *at; *at then is the next one's place. 0: there are more, 1: that was the last, -1: no
 * memory. */
static int read_record(struct reader *r, uint64_t *at)
{
    const unsigned char *record = look(&r->file, *at, RECORD);
    uint32_t size = record ? u32(record + 4) : 0;
    size_t n = size < LONGEST ? size : LONGEST;

    if (size < RECORD || size > r->size - *at)
        return 1;
    record = look(&r->file, *at, n);
    if (!record)
        return 1;
    *at += size;
    if (u32(record) == CODE_LOAD && n > LOAD)
        return add_load(r, record, n);
    return u32(record) == CODE_MOVE && n >= MOVE ? add_move(r, record) : 0;
}

/* ---- what is where at the end ---- */

static int by_index(const void *a, const void *b)
{
    const struct code *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_place(const void *a, const void *b)
{
    const struct code *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* A move takes its name from what it moves, of which nothing stays where it was. */
static void resolve_moves(struct code *codes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct code *c = &codes[i], *before = i && codes[i - 1].index == c->index ? c - 1 : NULL;

        if (c->name != (size_t)NONE)
            continue;
        if (before && before->name != (size_t)NONE) {
            c->name = before->name;
            before->size = 0;
        } else {
            c->size = 0;
        }
    }
}

/* Of codes that overlap the newest stays: the others' memory was used again. */
static size_t drop_overwritten(struct code *codes, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        bool stale = codes[i].size == 0;

        while (!stale && kept && codes[i].start - codes[kept - 1].start < codes[kept - 1].size) {
            stale = codes[kept - 1].order > codes[i].order;
            kept -= !stale;
        }
        if (!stale)
            codes[kept++] = codes[i];
    }
    return kept;
}

static int take_codes(struct reader *r)
{
    int rc = 0;

    if (!r->codes.n)
        return 0;
    qsort(r->codes.at, r->codes.n, sizeof(r->codes.at[0]), by_index);
    resolve_moves(r->codes.at, r->codes.n);
    qsort(r->codes.at, r->codes.n, sizeof(r->codes.at[0]), by_place);
    r->codes.n = drop_overwritten(r->codes.at, r->codes.n);
    for (size_t i = 0; !rc && i < r->codes.n; i++) {
        const struct code *c = &r->codes.at[i];
        const char *name = r->names.at + c->name;

        rc = rec_perf_map_add(r->map, c->start, c->size, name, strlen(name));
    }
    return rc < 0 ? -1 : 0;
}

static int read_file(struct reader *r)
{
    const unsigned char *header = look(&r->file, 0, HEADER);
    uint64_t at = header ? u32(header + 8) : 0;
    struct stat st;
    size_t turn = 0;
    int rc = 0;

    if (fstat(r->file.fd, &st))
        return 0;
    r->size = (uint64_t)st.st_size;
    if (!header || u32(header) != JITDUMP_MAGIC || at < HEADER)
        return 0;
    while (!rc && !rec_perf_map_late(r->map, ++turn))
        rc = read_record(r, &at);
    return rc < 0 ? -1 : take_codes(r);
}

struct finder {
    pid_t pid;

    int fd;
};

static bool is_dump(const char *name)
{
    const char *slash = strrchr(name, '/');
    int at = 0;

    return slash && sscanf(slash, "/jit-%*d.dump%n", &at) == 0 && at && !slash[at];
}

/* Only the process's own, as with perf-PID.map. */
static int find_dump(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct finder *f = ctx;
    struct stat file, owner;
    char process[64];

    (void)err;
    if (!is_dump(map->name))
        return 0;
    f->fd = rec_map_open(f->pid, map);
    snprintf(process, sizeof(process), "/proc/%d", f->pid);
    if (f->fd >= 0 && !fstat(f->fd, &file) && S_ISREG(file.st_mode) && !stat(process, &owner) &&
        (file.st_uid == owner.st_uid || file.st_uid == 0))
        return 1;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    return 0;
}

int rec_jitdump_open(pid_t pid)
{
    struct finder f = {pid, -1};

    rec_proc_maps(pid, find_dump, &f, NULL);
    return f.fd;
}

int rec_jitdump_read(struct rec_perf_map *map, int fd)
{
    struct reader *r = calloc(1, sizeof(*r));
    int rc = -1;

    if (r) {
        r->map = map;
        r->file.fd = fd;
        rc = read_file(r);
        st_vec_free(&r->codes);
        st_vec_free(&r->names);
    }
    free(r);
    close(fd);
    return rc;
}
