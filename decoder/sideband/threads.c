/* Processes and threads as they come and go. */
#include "decoder/sideband/sideband_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* A failed insertion leaves the entry without a table. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Idle threads all have tid 0: they are told apart by their CPU. */
struct dec_tid {
    struct {
        int32_t tid, cpu;
    } key;

    struct dec_thread *latest;

    UT_hash_handle hh;
};

struct dec_pid {
    int32_t pid;

    struct dec_process *latest;

    UT_hash_handle hh;
};

static struct dec_tid *find(const struct dec_sideband *sb, int32_t tid, int32_t cpu)
{
    struct dec_tid *entry = NULL;
    struct dec_tid probe = {.key = {tid, tid ? -1 : cpu}};
    struct dec_tid *tids = sb->tids;

    HASH_FIND(hh, tids, &probe.key, sizeof(probe.key), entry);
    return entry;
}

static struct dec_tid *enter(struct dec_sideband *sb, int32_t tid, int32_t cpu)
{
    struct dec_tid *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->key.tid = tid;
    entry->key.cpu = tid ? -1 : cpu;
    HASH_ADD(hh, sb->tids, key, sizeof(entry->key), entry);
    if (!entry->hh.tbl) {
        free(entry);
        return NULL;
    }
    return entry;
}

int sb_name(struct dec_thread *thread, uint64_t time, const char *name)
{
    struct dec_name entry = {.time = time};

    snprintf(entry.name, sizeof(entry.name), "%.15s", name);
    if (thread->names.n && !strcmp(thread->names.at[thread->names.n - 1].name, entry.name))
        return 0;
    if (thread->names.n && thread->names.at[thread->names.n - 1].time >= time) {
        thread->names.at[thread->names.n - 1] = entry;
        return 0;
    }
    return st_vec_push(&thread->names, entry);
}

struct dec_thread *dec_sideband_need_thread(struct dec_sideband *sb, int32_t pid, int32_t tid, int32_t cpu,
                                            uint64_t time)
{
    struct sb_context c = {.sb = sb};
    struct dec_thread *thread = dec_sideband_thread(sb, tid, cpu, time);

    if (thread)
        return thread;
    pthread_mutex_lock(&sb->lock);
    thread = sb_thread(&c, pid, tid, cpu);
    if (thread)
        thread->made = true;
    pthread_mutex_unlock(&sb->lock);
    return thread;
}

static struct dec_pid *find_pid(const struct dec_sideband *sb, int32_t pid)
{
    struct dec_pid *entry = NULL;
    struct dec_pid *pids = sb->pids;

    HASH_FIND_INT(pids, &pid, entry);
    return entry;
}

/* The pid's entry, made if need be. NULL: no memory. */
static struct dec_pid *enter_pid(struct dec_sideband *sb, int32_t pid)
{
    struct dec_pid *entry = find_pid(sb, pid);

    if (entry)
        return entry;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    entry->pid = pid;
    HASH_ADD_INT(sb->pids, pid, entry);
    if (!entry->hh.tbl) {
        free(entry);
        return NULL;
    }
    return entry;
}

struct dec_process *sb_new_process(struct sb_context *c, int32_t pid, int32_t parent, uint64_t time)
{
    struct dec_pid *entry = enter_pid(c->sb, pid);
    struct dec_process *process = entry ? calloc(1, sizeof(*process)) : NULL;

    if (!process)
        return NULL;
    *process = (struct dec_process){
        .index = c->sb->processes.n, .pid = pid, .parent_pid = parent, .start = time, .end = UINT64_MAX};
    if (dec_space_new(c->sb->kernel, &process->space, NULL) || st_vec_push(&c->sb->processes, process)) {
        dec_space_free(process->space);
        free(process);
        return NULL;
    }
    entry->latest = process;
    return process;
}

struct dec_process *sb_find_process(const struct dec_sideband *sb, int32_t pid)
{
    const struct dec_pid *entry = find_pid(sb, pid);

    return entry ? entry->latest : NULL;
}

struct dec_process *sb_process(struct sb_context *c, int32_t pid)
{
    struct dec_process *process = sb_find_process(c->sb, pid);

    return process ? process : sb_new_process(c, pid, -1, 0);
}

static struct dec_thread *add_thread(struct sb_context *c, struct dec_tid *entry, struct dec_process *process,
                                     uint64_t time)
{
    struct dec_thread *thread = calloc(1, sizeof(*thread));
    char name[16];

    if (!thread)
        return NULL;
    thread->process = process;
    thread->tid = entry->key.tid;
    thread->cpu = entry->key.cpu;
    thread->start = time;
    thread->end = UINT64_MAX;
    thread->index = c->sb->threads.n;
    thread->earlier = entry->latest;
    if (thread->tid < 0)
        snprintf(name, sizeof(name), "[unknown]");
    else if (thread->tid)
        snprintf(name, sizeof(name), ":%d", thread->tid);
    else
        snprintf(name, sizeof(name), "swapper/%d", thread->cpu);
    if (sb_name(thread, 0, name) || st_vec_push(&c->sb->threads, thread)) {
        st_vec_free(&thread->names);
        free(thread);
        return NULL;
    }
    entry->latest = thread;
    return thread;
}

struct dec_thread *sb_new_thread(struct sb_context *c, int32_t pid, int32_t tid, uint64_t time)
{
    struct dec_tid *entry = find(c->sb, tid, -1);
    struct dec_process *process = sb_process(c, pid);

    if (!entry)
        entry = enter(c->sb, tid, -1);
    return entry && process ? add_thread(c, entry, process, time) : NULL;
}

struct dec_thread *sb_thread(struct sb_context *c, int32_t pid, int32_t tid, int32_t cpu)
{
    struct dec_tid *entry = find(c->sb, tid, cpu);
    struct dec_process *process;

    if (entry && entry->latest)
        return entry->latest;
    if (!entry)
        entry = enter(c->sb, tid, cpu);
    process = sb_process(c, pid < 0 ? tid : pid);
    return entry && process ? add_thread(c, entry, process, 0) : NULL;
}

struct dec_thread *dec_sideband_thread(const struct dec_sideband *sb, int32_t tid, int32_t cpu, uint64_t time)
{
    struct dec_tid *entry = find(sb, tid, cpu);
    struct dec_thread *thread = entry ? entry->latest : NULL;

    while (thread && thread->earlier && thread->start > time)
        thread = thread->earlier;
    return thread;
}

const char *dec_thread_name(const struct dec_thread *thread, uint64_t time)
{
    size_t i = thread->names.n - 1;

    while (i > 0 && thread->names.at[i].time > time)
        i--;
    return thread->names.at[i].name;
}

bool dec_process_is_narrow(const struct dec_process *process, uint64_t time)
{
    size_t i = process->abis.n;

    while (i > 1 && process->abis.at[i - 1].since > time)
        i--;
    return i && process->abis.at[i - 1].narrow;
}

static void free_thread(struct dec_thread *thread)
{
    st_vec_free(&thread->names);
    st_vec_free(&thread->slices);
    st_vec_free(&thread->offcpu);
    st_vec_free(&thread->execs);
    free(thread);
}

void sb_free_threads(struct dec_sideband *sb)
{
    struct dec_tid *entry, *next;
    struct dec_pid *pid, *next_pid;

    HASH_ITER(hh, sb->tids, entry, next)
    {
        HASH_DEL(sb->tids, entry);
        free(entry);
    }
    HASH_ITER(hh, sb->pids, pid, next_pid)
    {
        HASH_DEL(sb->pids, pid);
        free(pid);
    }
    for (size_t i = 0; i < sb->threads.n; i++)
        free_thread(sb->threads.at[i]);
    for (size_t i = 0; i < sb->processes.n; i++) {
        if (!sb->processes.at[i]->borrowed)
            dec_space_free(sb->processes.at[i]->space);
        st_vec_free(&sb->processes.at[i]->abis);
        free(sb->processes.at[i]);
    }
    st_vec_free(&sb->threads);
    st_vec_free(&sb->processes);
}
