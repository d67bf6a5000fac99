/* Code that no file holds under its name: the vdso into the snapshot (struct st_vdso_record), the rest beside
 * it. */
#include "base/log.h"
#include "base/vec.h"
#include "recorder/code/proc_maps.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot_impl.h"
#include "triggers/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VDSO = 32 * 1024 };

struct vdso {
    struct st_vdso_record head;

    char bytes[MOST_VDSO];
};

struct copier {
    struct snap *s;

    pid_t pid;

    int memory;

    bool failed; /* in memory or in writing */

    ST_VEC(struct vdso *) vdsos; /* written already */
};

/* Whether these bytes were written for another process. */
static bool is_known(const struct copier *c, const struct vdso *v)
{
    for (size_t i = 0; i < c->vdsos.n; i++)
        if (c->vdsos.at[i]->head.size == v->head.size &&
            !memcmp(c->vdsos.at[i]->bytes, v->bytes, v->head.size))
            return true;
    return false;
}

/* The kernel's records of mappings have no build id of it, which is no file. */
static int write_vdso_id(struct copier *c, const struct vdso *v, struct st_error *err)
{
    uint8_t id[REC_BUILD_ID_MAX];
    size_t size = rec_build_id_ask(&c->s->child, -1, v->bytes, v->head.size, id);

    return size ? pd_writer_build_id(c->s->w, -1, PERF_RECORD_MISC_USER, id, size, "[vdso]", err) : 0;
}

static int write_vdso(struct copier *c, const struct rec_map *map, struct st_error *err)
{
    struct vdso *v = calloc(1, sizeof(*v));
    size_t size = map->end - map->start;
    int rc;

    if (!v)
        return st_nomem(err, "a copy of the vdso");
    v->head = (struct st_vdso_record){
        .magic = ST_VDSO_MAGIC,
        .version = ST_STALL_VERSION,
        .pid = (st_u32)c->pid,
        .size = (st_u32)size,
        .address = map->start,
    };
    if (size > MOST_VDSO || rec_proc_read(c->memory, map->start, v->bytes, size) != size || is_known(c, v)) {
        free(v);
        return 0;
    }
    if (st_vec_push(&c->vdsos, v)) {
        free(v);
        return st_nomem(err, "a copy of the vdso");
    }
    rc = write_vdso_id(c, v, err);
    return rc ? rc : snap_write_sample(c->s, SNAP_META, v, sizeof(v->head) + size, err);
}

static int look_at(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct copier *c = ctx;
    int rc = strcmp(map->name, "[vdso]") ? 0 : write_vdso(c, map, err);

    c->failed = rc != 0;
    return rc;
}

static int copy_vdso(struct copier *c, pid_t pid, struct st_error *err)
{
    int rc;

    c->pid = pid;
    c->memory = trg_memory_open(pid);
    if (c->memory < 0)
        return 0; /* it ended */
    rc = rec_proc_maps(pid, look_at, c, err);
    close(c->memory);
    return c->failed ? rc : 0;
}

int snap_write_vdsos(struct snap *s, struct st_error *err)
{
    struct copier c = {.s = s};
    int rc = 0;

    for (size_t i = 0; !rc && i < s->pids.n; i++)
        rc = copy_vdso(&c, s->pids.at[i], err);
    /* Our own is the same as that of a target that has ended. */
    if (!rc)
        rc = copy_vdso(&c, getpid(), err);
    for (size_t i = 0; i < c.vdsos.n; i++)
        free(c.vdsos.at[i]);
    st_vec_free(&c.vdsos);
    return rc;
}

/* A snapshot without them is better than none: what is missing becomes gaps. */
void snap_copy_code(struct snap *s, const char *path)
{
    struct st_error err = {0};
    int rc = rec_code_files_open_at(&s->code, s->in->folder, path, &err);

    for (size_t i = 0; !rc && i < s->pids.n; i++)
        rc = rec_code_files_add(&s->code, s->pids.at[i], &err);
    if (!rc)
        rc = rec_code_files_sync(&s->code, &err);
    if (!rc)
        return;
    rec_code_files_abort(&s->code);
    st_log_warn("code without a file could not be copied, its calls will be missing: %s", err.text);
}

int snap_write_map(struct snap *s, const struct rec_mmap2_record *map, struct st_error *err)
{
    const struct rec_code_file *copy = rec_code_files_find(&s->code, map);
    const struct rec_trailer *trailer =
        (const struct rec_trailer *)((const char *)map + map->header.size) - 1;
    uint64_t buffer[(sizeof(*map) + PATH_MAX + 8 + sizeof(*trailer)) / 8] = {0};
    struct rec_mmap2_record *to = (struct rec_mmap2_record *)buffer;
    size_t name;

    if (!copy)
        return pd_writer_record(s->w, &map->header, err);
    memcpy(to, map, sizeof(*map));
    to->pgoff = copy->pgoff + (map->addr - copy->start);
    name = strnlen(copy->path, PATH_MAX - 1);
    memcpy(to->filename, copy->path, name);
    name = (name + 8) & ~(size_t)7;
    memcpy((char *)to->filename + name, trailer, sizeof(*trailer));
    to->header.size = (uint16_t)(offsetof(struct rec_mmap2_record, filename) + name + sizeof(*trailer));
    return pd_writer_record(s->w, &to->header, err);
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

int snap_list_processes(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        pid_t pid = process_of(list[i].record);

        if (pid && st_vec_push(&s->pids, pid))
            return st_nomem(err, "the list of processes");
    }
    if (s->pids.n)
        qsort(s->pids.at, s->pids.n, sizeof(*s->pids.at), by_pid);
    for (size_t i = 0; i < s->pids.n; i++)
        if (!kept || s->pids.at[i] != s->pids.at[kept - 1])
            s->pids.at[kept++] = s->pids.at[i];
    s->pids.n = kept;
    return 0;
}
