/* Executable memory that no file holds: struct st_code_record. */
#include "base/vec.h"
#include "recorder/perf_record.h"
#include "recorder/proc_maps.h"
#include "recorder/snapshot_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 32 * 1024,
    MOST_CODE = 64 << 20, /* bytes of one snapshot */
    MOST_VDSO = 64 * 1024,
};

struct vdso {
    size_t size;

    char *bytes;
};

struct copier {
    struct snap *s;

    pid_t pid;

    int memory;

    size_t left; /* of MOST_CODE */

    bool failed; /* in memory or in writing */

    ST_VEC(struct vdso) vdsos; /* written already */

    char raw[sizeof(struct st_code_record) + PATH_MAX + 8 + PIECE];
};

static bool all_zero(const char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && !memcmp(bytes, bytes + 1, size - 1));
}

static int copy_piece(struct copier *c, const struct rec_map *map, uint64_t from, struct st_error *err)
{
    size_t name_size = (strlen(map->name) + 8) & ~(size_t)7;
    char *code = c->raw + sizeof(struct st_code_record) + name_size;
    size_t want = map->end - from < PIECE ? map->end - from : PIECE;
    size_t got = rec_proc_read(c->memory, from, code, want);
    struct st_code_record head = {
        .magic = ST_CODE_MAGIC,
        .version = ST_STALL_VERSION,
        .name_size = (st_u16)name_size,
        .pid = (st_u32)c->pid,
        .size = (st_u32)got,
        .address = from,
        .start = map->start,
        .pgoff = map->pgoff,
    };

    if (all_zero(code, got))
        return 0;
    memcpy(c->raw, &head, sizeof(head));
    memset(c->raw + sizeof(head), 0, name_size);
    memcpy(c->raw + sizeof(head), map->name, strlen(map->name));
    c->left -= got < c->left ? got : c->left;
    return snap_write_sample(c->s, SNAP_META, c->raw, sizeof(head) + name_size + got, err);
}

/* Whether these bytes were written for another process. Notes them when not. */
static int known_vdso(struct copier *c, const struct rec_map *map, struct st_error *err)
{
    struct vdso v = {.size = map->end - map->start};
    bool known = false;

    if (v.size > MOST_VDSO)
        return 1;
    v.bytes = malloc(v.size);
    if (!v.bytes)
        return st_nomem(err, "a copy of the vdso");
    if (rec_proc_read(c->memory, map->start, v.bytes, v.size) != v.size)
        known = true; /* nothing to write */
    for (size_t i = 0; !known && i < c->vdsos.n; i++)
        known = c->vdsos.at[i].size == v.size && !memcmp(c->vdsos.at[i].bytes, v.bytes, v.size);
    if (known || st_vec_push(&c->vdsos, v)) {
        free(v.bytes);
        return known ? 1 : st_nomem(err, "a copy of the vdso");
    }
    return 0;
}

static int copy_map(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct copier *c = ctx;
    int rc = 0;

    if (!strcmp(map->name, "[vsyscall]") || rec_map_findable(map))
        return 0;
    if (!strcmp(map->name, "[vdso]"))
        rc = known_vdso(c, map, err);
    for (uint64_t at = map->start; !rc && at < map->end && c->left; at += PIECE)
        rc = copy_piece(c, map, at, err);
    c->failed = rc < 0;
    return c->failed ? rc : 0;
}

static int copy_process(struct copier *c, pid_t pid, struct st_error *err)
{
    int rc;

    c->pid = pid;
    c->memory = rec_proc_memory(pid);
    if (c->memory < 0)
        return 0; /* it ended */
    rc = rec_proc_maps(pid, copy_map, c, err);
    close(c->memory);
    return c->failed ? rc : 0; /* that its mappings cannot be read any more is no failure */
}

static int by_pid(const void *a, const void *b)
{
    return *(const pid_t *)a - *(const pid_t *)b;
}

/* The process that the record is about the beginning of, else 0. */
static pid_t process_of(const struct perf_event_header *record)
{
    const struct rec_comm_record *comm = (const struct rec_comm_record *)record;
    const struct rec_task_record *task = (const struct rec_task_record *)record;

    if (record->type == PERF_RECORD_COMM && comm->pid == comm->tid)
        return (pid_t)comm->pid;
    if (record->type == PERF_RECORD_FORK && task->pid == task->tid)
        return (pid_t)task->pid;
    return 0;
}

/* The processes that the side-band tells of. */
static int each_process(struct copier *c, const struct rec_stored *list, size_t n, struct st_error *err)
{
    ST_VEC(pid_t) pids = {0};
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++) {
        pid_t pid = process_of(list[i].record);

        if (pid && st_vec_push(&pids, pid))
            rc = st_nomem(err, "the list of processes");
    }
    if (!rc && pids.n)
        qsort(pids.at, pids.n, sizeof(*pids.at), by_pid);
    for (size_t i = 0; !rc && i < pids.n; i++)
        if (i == 0 || pids.at[i] != pids.at[i - 1])
            rc = copy_process(c, pids.at[i], err);
    st_vec_free(&pids);
    return rc;
}

int snap_write_code(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err)
{
    struct copier *c = calloc(1, sizeof(*c));
    int rc;

    if (!c)
        return st_nomem(err, "a copy of code without a file");
    c->s = s;
    c->left = MOST_CODE;
    rc = each_process(c, list, n, err);
    for (size_t i = 0; i < c->vdsos.n; i++)
        free(c->vdsos.at[i].bytes);
    st_vec_free(&c->vdsos);
    free(c);
    return rc;
}
