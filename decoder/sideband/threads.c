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

static void free_process(struct dec_process *process)
{
    if (!process)
        return;
    if (!process->borrowed)
        dec_space_free(process->space);
    st_vec_free(&process->abis);
    free(process);
}

/* A process that the side-band does not have yet. NULL: no memory. */
static struct dec_process *make_process(const struct dec_sideband *sb, int32_t pid, int32_t parent,
                                        uint64_t time)
{
    struct dec_process *process = calloc(1, sizeof(*process));

    if (!process)
        return NULL;
    *process = (struct dec_process){
        .index = SIZE_MAX, .pid = pid, .parent_pid = parent, .start = time, .end = UINT64_MAX};
    if (dec_space_new(sb->kernel, &process->space, NULL) == 0)
        return process;
    free(process);
    return NULL;
}

/* 0 or -1 (no memory). */
static int add_process(struct dec_sideband *sb, struct dec_process *process)
{
    struct dec_pid *entry = enter_pid(sb, process->pid);

    if (!entry || st_vec_push(&sb->processes, process))
        return -1;
    process->index = sb->processes.n - 1;
    entry->latest = process;
    return 0;
}

struct dec_process *sb_new_process(struct sb_context *c, int32_t pid, int32_t parent, uint64_t time)
{
    struct dec_process *process = make_process(c->sb, pid, parent, time);

    if (process && !add_process(c->sb, process))
        return process;
    free_process(process);
    return NULL;
}

struct dec_process *sb_find_process(const struct dec_sideband *sb, int32_t pid)
{
    const struct dec_pid *entry = find_pid(sb, pid);

    return entry ? entry->latest : NULL;
}

static void free_thread(struct dec_thread *thread)
{
    st_vec_free(&thread->names);
    st_vec_free(&thread->slices);
    st_vec_free(&thread->offcpu);
    st_vec_free(&thread->execs);
    free(thread);
}

struct dec_process *sb_process(struct sb_context *c, int32_t pid)
{
    struct dec_process *process = sb_find_process(c->sb, pid);

    return process ? process : sb_new_process(c, pid, -1, 0);
}

/* A thread that the side-band does not have yet. NULL: no memory. */
static struct dec_thread *make_thread(struct dec_process *process, int32_t tid, int32_t cpu, uint64_t time)
{
    struct dec_thread *thread = calloc(1, sizeof(*thread));
    char name[16];

    if (!thread)
        return NULL;
    thread->process = process;
    thread->tid = tid;
    thread->cpu = tid ? -1 : cpu;
    thread->start = time;
    thread->end = UINT64_MAX;
    thread->index = SIZE_MAX;
    if (thread->tid < 0)
        snprintf(name, sizeof(name), "[unknown]");
    else if (thread->tid)
        snprintf(name, sizeof(name), ":%d", thread->tid);
    else
        snprintf(name, sizeof(name), "swapper/%d", thread->cpu);
    if (sb_name(thread, 0, name) == 0)
        return thread;
    free(thread);
    return NULL;
}

static struct dec_thread *add_thread(struct sb_context *c, struct dec_tid *entry, struct dec_process *process,
                                     uint64_t time)
{
    struct dec_thread *thread = make_thread(process, entry->key.tid, entry->key.cpu, time);

    if (!thread)
        return NULL;
    if (st_vec_push(&c->sb->threads, thread)) {
        free_thread(thread);
        return NULL;
    }
    thread->index = c->sb->threads.n - 1;
    thread->earlier = entry->latest;
    entry->latest = thread;
    return thread;
}

struct dec_thread *dec_sideband_unheard(const struct dec_sideband *sb, int32_t pid, int32_t tid, int32_t cpu)
{
    int32_t of = pid < 0 ? tid : pid;
    struct dec_process *known = sb_find_process(sb, of), *process = known;
    struct dec_thread *thread;

    if (!process)
        process = make_process(sb, of, -1, 0);
    thread = process ? make_thread(process, tid, cpu, 0) : NULL;
    if (!thread && !known)
        free_process(process);
    return thread;
}

int dec_sideband_adopt(struct dec_sideband *sb, struct dec_thread *thread)
{
    struct dec_tid *entry = find(sb, thread->tid, thread->cpu);

    if (!entry)
        entry = enter(sb, thread->tid, thread->cpu);
    if (!entry || (thread->process->index == SIZE_MAX && add_process(sb, thread->process)) ||
        st_vec_push(&sb->threads, thread))
        return -1;
    thread->index = sb->threads.n - 1;
    thread->earlier = entry->latest;
    entry->latest = thread;
    return 0;
}

void dec_sideband_disown(struct dec_thread *thread)
{
    if (!thread)
        return;
    if (thread->process->index == SIZE_MAX)
        free_process(thread->process);
    free_thread(thread);
}

struct dec_thread *dec_sideband_need_thread(struct dec_sideband *sb, int32_t pid, int32_t tid, int32_t cpu,
                                            uint64_t time)
{
    struct dec_thread *thread = dec_sideband_thread(sb, tid, cpu, time);

    if (thread)
        return thread;
    thread = dec_sideband_unheard(sb, pid, tid, cpu);
    if (!thread || !dec_sideband_adopt(sb, thread))
        return thread;
    dec_sideband_disown(thread);
    return NULL;
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
    for (size_t i = 0; i < sb->processes.n; i++)
        free_process(sb->processes.at[i]);
    st_vec_free(&sb->threads);
    st_vec_free(&sb->processes);
}
