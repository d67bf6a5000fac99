/* jit-PID.dump. */
#include "recorder/jitdump.h"
#include "recorder/proc_maps.h"

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
    MOST_SYMBOLS = 1 << 20
};

struct code {
    uint64_t start, size, index;

    size_t name; /* in the names of the map */

    size_t order; /* of the records */
};

struct reader {
    struct rec_perf_map *map;

    uint64_t start, end;

    ST_VEC(struct code) codes;

    FILE *file;
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

static int add_load(struct reader *r, const unsigned char *record, size_t n)
{
    struct code c = {u64(record + RECORD + 16), u64(record + RECORD + 24), u64(record + RECORD + 32), 0,
                     r->codes.n};
    const char *name = (const char *)record + LOAD;
    size_t length = strnlen(name, n - LOAD);

    if (!length || r->codes.n >= MOST_SYMBOLS)
        return 0;
    c.name = r->map->names.n;
    if (st_vec_reserve(&r->map->names, length + 1))
        return -1;
    memcpy(r->map->names.at + c.name, name, length);
    r->map->names.at[c.name + length] = '\0';
    r->map->names.n += length + 1;
    return st_vec_push(&r->codes, c);
}

static int add_move(struct reader *r, const unsigned char *record)
{
    uint64_t index = u64(record + RECORD + 40);

    for (size_t i = r->codes.n; i-- > 0;) {
        struct code c = r->codes.at[i];

        if (c.index != index)
            continue;
        r->codes.at[i].size = 0; /* nothing is there any more */
        c.start = u64(record + RECORD + 24);
        c.size = u64(record + RECORD + 32);
        c.order = r->codes.n;
        return r->codes.n < MOST_SYMBOLS ? st_vec_push(&r->codes, c) : 0;
    }
    return 0;
}

/* 1: there are more, 0: that was the last, -1: no memory. */
static int read_record(struct reader *r)
{
    unsigned char record[LONGEST];
    size_t n = fread(record, 1, RECORD, r->file);
    uint32_t size = n == RECORD ? u32(record + 4) : 0;
    int rc = 0;

    if (size < RECORD)
        return 0;
    n = size < sizeof(record) ? size : sizeof(record);
    if (fread(record + RECORD, 1, n - RECORD, r->file) != n - RECORD ||
        fseeko(r->file, (off_t)(size - n), SEEK_CUR))
        return 0;
    if (u32(record) == CODE_LOAD && n > LOAD)
        rc = add_load(r, record, n);
    else if (u32(record) == CODE_MOVE && n >= MOVE)
        rc = add_move(r, record);
    return rc ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    const struct code *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
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
    if (r->codes.n)
        qsort(r->codes.at, r->codes.n, sizeof(r->codes.at[0]), by_place);
    r->codes.n = drop_overwritten(r->codes.at, r->codes.n);
    for (size_t i = 0; i < r->codes.n; i++) {
        const struct code *c = &r->codes.at[i];
        struct rec_perf_symbol s = {c->start, c->size, c->name};

        if (c->start < r->start || c->start >= r->end || c->size > r->end - c->start)
            continue;
        if (st_vec_push(&r->map->symbols, s))
            return -1;
    }
    return 0;
}

static int read_file(struct reader *r)
{
    unsigned char header[HEADER];
    int rc = 1;

    if (fread(header, 1, HEADER, r->file) != HEADER || u32(header) != JITDUMP_MAGIC ||
        u32(header + 8) < HEADER || fseeko(r->file, u32(header + 8), SEEK_SET))
        return 0;
    while (rc > 0)
        rc = read_record(r);
    if (!rc)
        rc = take_codes(r);
    st_vec_free(&r->codes);
    return rc;
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
static int open_dump(void *ctx, const struct rec_map *map, struct st_error *err)
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

int rec_jitdump_read(struct rec_perf_map *map, pid_t pid, uint64_t start, uint64_t end)
{
    struct reader r = {.map = map, .start = start, .end = end};
    struct finder f = {pid, -1};
    int rc;

    rec_proc_maps(pid, open_dump, &f, NULL);
    if (f.fd < 0)
        return 0;
    r.file = fdopen(f.fd, "r");
    if (!r.file) {
        close(f.fd);
        return -1;
    }
    rc = read_file(&r);
    fclose(r.file);
    return rc;
}
