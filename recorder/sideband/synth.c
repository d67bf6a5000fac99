/* Side-band records made from /proc. */
#include "recorder/sideband/synth.h"
#include "base/target.h"
#include "recorder/code/proc_maps.h"
#include "recorder/perf/record.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct synth {
    struct rec_store *store;

    struct st_confined *child;

    pid_t pid;

    uint64_t time, id;

    bool joined;
};

/* Appends the trailer behind `used` bytes (a multiple of 8) and stores the record. */
static int finish(const struct synth *s, struct perf_event_header *record, size_t used, pid_t tid,
                  struct st_error *err)
{
    struct rec_trailer *t = (struct rec_trailer *)((char *)record + used);

    *t = (struct rec_trailer){.pid = (uint32_t)s->pid, .tid = (uint32_t)tid, .time = s->time, .id = s->id};
    record->size = (uint16_t)(used + sizeof(*t));
    return rec_store_add(s->store, record, s->time, err);
}

/* Copies a name as the kernel does: NUL-terminated, padded with NULs to 8. Returns the bytes used. */
static size_t put_name(char *to, const char *name, size_t most)
{
    size_t len = strnlen(name, most - 1);
    size_t size = (len + 8) & ~(size_t)7;

    memset(to, 0, size);
    memcpy(to, name, len);
    return size;
}

static int synth_fork(const struct synth *s, pid_t tid, pid_t parent, struct st_error *err)
{
    uint64_t buffer[16] = {0};
    struct rec_task_record *r = (struct rec_task_record *)buffer;

    r->header.type = PERF_RECORD_FORK;
    r->pid = (uint32_t)s->pid;
    r->tid = (uint32_t)tid;
    r->ppid = r->ptid = (uint32_t)parent;
    r->time = s->joined ? 0 : s->time;
    return finish(s, &r->header, sizeof(*r), tid, err);
}

static int synth_comm(const struct synth *s, pid_t tid, struct st_error *err)
{
    uint64_t buffer[24] = {0};
    struct rec_comm_record *r = (struct rec_comm_record *)buffer;
    char path[64], name[64] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", s->pid, tid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (!fgets(name, sizeof(name), f))
        name[0] = '\0';
    fclose(f);
    name[strcspn(name, "\n")] = '\0';
    r->header.type = PERF_RECORD_COMM;
    r->pid = (uint32_t)s->pid;
    r->tid = (uint32_t)tid;
    return finish(s, &r->header, offsetof(struct rec_comm_record, comm) + put_name(r->comm, name, 64), tid,
                  err);
}

static void set_build_id(const struct synth *s, const struct rec_map *map, struct rec_mmap2_record *r)
{
    uint8_t id[REC_BUILD_ID_MAX] = {0};
    size_t size = 0;
    int fd = rec_map_open(s->pid, map);

    if (fd >= 0) {
        size = rec_build_id_ask(s->child, fd, NULL, 0, id);
        close(fd);
    }
    if (!size) {
        r->maj = map->maj;
        r->min = map->min;
        r->ino = map->ino;
        return;
    }
    r->header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
    r->build_id_size = (uint8_t)size;
    memcpy(r->build_id, id, sizeof(r->build_id));
}

static int synth_map(void *ctx, const struct rec_map *map, struct st_error *err)
{
    const struct synth *s = ctx;
    uint64_t buffer[(sizeof(struct rec_mmap2_record) + PATH_MAX + 8 + sizeof(struct rec_trailer)) / 8];
    struct rec_mmap2_record *r = (struct rec_mmap2_record *)buffer;

    *r = (struct rec_mmap2_record){
        .header = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER},
        .pid = (uint32_t)s->pid,
        .tid = (uint32_t)s->pid,
        .addr = map->start,
        .len = map->end - map->start,
        .pgoff = map->pgoff,
        .prot = map->prot,
        .flags = map->flags,
    };
    set_build_id(s, map, r);
    return finish(s, &r->header,
                  offsetof(struct rec_mmap2_record, filename) + put_name(r->filename, map->name, PATH_MAX),
                  s->pid, err);
}

static int synth_threads(const struct synth *s, struct st_error *err)
{
    pid_t *tids = NULL;
    int n = st_target_threads(s->pid, &tids, err);
    int rc = n < 0 ? n : 0;

    for (int i = 0; !rc && i < n; i++) {
        if (tids[i] == s->pid)
            continue;
        rc = synth_fork(s, tids[i], s->pid, err);
        if (!rc)
            rc = synth_comm(s, tids[i], err);
    }
    free(tids);
    return rc;
}

static int synth_process(const struct synth *s, struct st_error *err)
{
    pid_t parent = st_target_parent(s->pid);
    int rc;

    if (!parent && s->pid != 1)
        return 0;
    rc = synth_fork(s, s->pid, parent, err);
    if (!rc)
        rc = synth_comm(s, s->pid, err);
    if (!rc)
        rc = rec_proc_maps(s->pid, synth_map, (void *)s, err);
    if (rc == ST_EFAIL) /* it ended, or is a kernel thread */
        rc = 0;
    return rc ? rc : synth_threads(s, err);
}

int rec_synth_process(struct rec_store *store, struct st_confined *child, pid_t pid, uint64_t time,
                      uint64_t id, struct st_error *err)
{
    const struct synth s = {.store = store, .child = child, .pid = pid, .time = time, .id = id};

    return synth_process(&s, err);
}

int rec_synth_joined(struct rec_store *store, struct st_confined *child, pid_t pid, uint64_t time,
                     uint64_t id, struct st_error *err)
{
    const struct synth s = {
        .store = store, .child = child, .pid = pid, .time = time, .id = id, .joined = true};

    return synth_process(&s, err);
}

int rec_synth_all(struct rec_store *store, struct st_confined *child, uint64_t time, uint64_t id,
                  struct st_error *err)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int rc = 0;

    if (!proc)
        return st_fail_errno(err, ST_EFAIL, "cannot list /proc");
    while (!rc && (e = readdir(proc)))
        if (isdigit((unsigned char)e->d_name[0]))
            rc = rec_synth_process(store, child, atoi(e->d_name), time, id, err);
    closedir(proc);
    return rc;
}
