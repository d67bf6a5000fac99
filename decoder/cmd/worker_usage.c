/* What the worker and its children take of the machine, all together: limits of the kernel are for one
 * process and one file. */
#include "decoder/cmd/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* ---- disk ---- */

/* Of a disk that has room, so much is left to others. Where there is less than twice that, it may get full,
 * which is told as what it is. */
#define LEFT_TO_OTHERS (512 * MIB)

uint64_t dec_usage_disk(const struct decode_options *options, int folder)
{
    uint64_t most = dec_disk(options), free_bytes;
    struct statvfs fs;

    if (folder < 0 || fstatvfs(folder, &fs))
        return most;
    free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (free_bytes < 2 * LEFT_TO_OTHERS)
        return most;
    return free_bytes - LEFT_TO_OTHERS < most ? free_bytes - LEFT_TO_OTHERS : most;
}

int dec_usage_file(struct dec_usage *u, int fd)
{
    int copy = fd < 0 || u->nfiles >= DEC_MOST_FILES ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (fd >= 0 && u->nfiles >= DEC_MOST_FILES)
        errno = EDQUOT;
    if (copy < 0)
        return -1;
    u->files[u->nfiles++] = copy;
    return 0;
}

static uint64_t disk_of_all(const struct dec_usage *u)
{
    uint64_t sum = 0;
    struct stat st;

    for (unsigned i = 0; i < u->nfiles; i++)
        sum += fstat(u->files[i], &st) ? 0 : (uint64_t)st.st_blocks * 512;
    return sum;
}

/* ---- processes ---- */

/* Whoever is in the worker's process group, which the filter of system calls lets nobody leave. */
struct group {
    pid_t leader, at[DEC_MOST_PROCESSES];

    size_t n;

    bool full;
};

static void add_children_of_thread(struct group *g, pid_t pid, const char *thread)
{
    char path[96];
    FILE *f;
    int child;

    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", pid, thread);
    f = fopen(path, "re");
    while (f && !g->full && fscanf(f, "%d", &child) == 1) {
        if (getpgid(child) != g->leader)
            continue;
        g->full = g->n == DEC_MOST_PROCESSES;
        if (!g->full)
            g->at[g->n++] = child;
    }
    if (f)
        fclose(f);
}

static void add_children(struct group *g, pid_t pid)
{
    char path[64];
    struct dirent *e;
    DIR *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    threads = opendir(path);
    while (threads && (e = readdir(threads)))
        if (e->d_name[0] != '.')
            add_children_of_thread(g, pid, e->d_name);
    if (threads)
        closedir(threads);
}

/* From this process down: one whose parent has ended becomes its child. */
static void find_group(struct group *g, pid_t leader)
{
    *g = (struct group){.leader = leader};
    add_children(g, getpid());
    for (size_t i = 0; i < g->n; i++)
        add_children(g, g->at[i]);
}

/* Bytes of a process that are in memory and of no file; 0: it is gone. */
static uint64_t memory_of(pid_t pid)
{
    unsigned long kib, sum = 0;
    char path[64], line[128];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "RssAnon: %lu", &kib) == 1 || sscanf(line, "RssShmem: %lu", &kib) == 1)
            sum += kib;
    if (f)
        fclose(f);
    return (uint64_t)sum << 10;
}

/* ---- all of it ---- */

enum dec_excess dec_usage_look(const struct dec_usage *u)
{
    uint64_t memory = 0;
    struct group g;

    if (disk_of_all(u) > u->disk)
        return DEC_TOO_MUCH_DISK;
    find_group(&g, u->worker);
    for (size_t i = 0; i < g.n; i++)
        memory += memory_of(g.at[i]);
    if (memory > u->memory)
        return DEC_TOO_MUCH_MEMORY;
    return g.full ? DEC_TOO_MANY_PROCESSES : DEC_WITHIN;
}

void dec_usage_begin(struct dec_usage *u, pid_t worker)
{
    u->worker = worker;
    setpgid(worker, worker); /* it does so too: whoever comes first */
}

void dec_usage_kill(const struct dec_usage *u)
{
    if (u->worker <= 0)
        return;
    kill(-u->worker, SIGKILL);
    kill(u->worker, SIGKILL);
}

void dec_usage_end(struct dec_usage *u)
{
    while (u->nfiles)
        close(u->files[--u->nfiles]);
}
