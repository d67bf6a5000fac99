/* The fsync stall: one fsync of a big file that sleeps once, for about MS.
 *
 * An fsync of plain dirty pages sleeps many times (for each request the queue has no room for, then page by
 * page), so its sleeps are short however big the file is. Here a child (disk_writer.h) first queues direct
 * writes to the file, as many as the disk takes MS for, and one dirty page is left to the fsync: that page
 * stands in the disk's queue behind all the rest, and the fsync sleeps once, until it is written. How many
 * writes that takes is measured before the first stall and corrected after each. A disk that takes requests
 * out of order (or a file system without direct I/O) cannot stall so; a slow disk of our own (slow_disk.h)
 * stands in for it. */
#include "disk_writer.h"
#include "log.h"
#include "slow_disk.h"
#include "stall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096

/* Rounds to find the number of writes; the last must come this near (in percent of MS). */
#define ROUNDS     10
#define ROUNDS_MIN 3
#define NEAR_MIN   80
#define NEAR_MAX   170

struct fsync_state {
    enum fsync_via via;

    /* FSYNC_VIA_DISK: the child, and the writes it queues for one stall */
    struct disk_writer writer;
    unsigned writes;

    /* FSYNC_VIA_FUSE: the child and its file */
    pid_t slow_disk;
    int slow_fd;
};

static int sync_big_file(int fd)
{
    return fsync(fd);
}

static int dirty_one_page(int fd)
{
    static const char page[PAGE_BYTES] = "dirty";

    return pwrite(fd, page, sizeof(page), 0) == (ssize_t)sizeof(page) ? 0 : -1;
}

static int timed_fsync(int fd, uint64_t *start_ns, uint64_t *end_ns)
{
    *start_ns = now_ns();
    int result = sync_big_file(fd);
    *end_ns = now_ns();
    return result;
}

/* One stall. *in_order: the fsync came back only when the direct writes were done, so it did wait for them.
 * Returns 0, or -1 with errno set. */
static int stall_on_disk(const struct fsync_state *file, uint64_t *start_ns, uint64_t *end_ns, bool *in_order)
{
    if (dirty_one_page(file->writer.fd))
        return -1;
    int queued = disk_writer_queue(&file->writer, file->writes);
    if (queued < 0)
        return -1;
    int result = timed_fsync(file->writer.fd, start_ns, end_ns);
    int done = disk_writer_reap(&file->writer);
    *in_order = done >= queued - 1;
    return done < 0 ? -1 : result;
}

/* The number of writes that would have taken MS, going at most a factor of 2 at a time. */
static unsigned corrected_writes(unsigned writes, unsigned ms, uint64_t took_ns)
{
    uint64_t wanted = took_ns ? writes * (ms * UINT64_C(1000000)) / took_ns + 1 : DISK_WRITES_MAX;

    if (wanted > 2 * writes)
        wanted = 2 * writes;
    if (wanted < writes / 2)
        wanted = writes / 2;
    if (wanted > DISK_WRITES_MAX)
        wanted = DISK_WRITES_MAX;
    return wanted ? (unsigned)wanted : 1;
}

static bool near(unsigned ms, uint64_t took_ns)
{
    uint64_t percent = took_ns / (ms * UINT64_C(10000));

    return percent >= NEAR_MIN && percent <= NEAR_MAX;
}

/* Finds the number of writes. Returns 0, or -1 with the reason in *why. */
static int measure_disk(struct fsync_state *file, unsigned ms, const char **why)
{
    *why = "its fsync does not take about MS";
    file->writes = DISK_FILE_WRITES;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t start_ns, end_ns;
        bool in_order;
        if (stall_on_disk(file, &start_ns, &end_ns, &in_order)) {
            *why = strerror(errno);
            return -1;
        }
        if (!in_order) {
            *why = "its fsync does not wait for the writes queued before";
            return -1;
        }
        if (round >= ROUNDS_MIN && near(ms, end_ns - start_ns))
            return 0;
        file->writes = corrected_writes(file->writes, ms, end_ns - start_ns);
    }
    return -1;
}

static int use_disk(struct fsync_state *file, const struct stall *stall, const struct stall_config *config)
{
    const char *why = NULL;

    if (disk_writer_start(&file->writer, config->dir))
        why = strerror(errno);
    else if (!measure_disk(file, stall->ms, &why)) {
        log_line("fsync via=disk dir=%s writes=%u of %u bytes", config->dir, file->writes, DISK_WRITE_BYTES);
        file->via = FSYNC_VIA_DISK;
        return 0;
    }
    log_line("fsync the disk of %s cannot stall for %u ms: %s", config->dir, stall->ms, why);
    if (config->fsync_via == FSYNC_VIA_DISK)
        fprintf(
            stderr,
            "forwarder: the disk of %s cannot stall for %u ms: %s; try another --dir, or --fsync-via fuse\n",
            config->dir, stall->ms, why);
    disk_writer_stop(&file->writer);
    return -1;
}

static int use_slow_disk(struct fsync_state *file, const struct stall *stall)
{
    if (slow_disk_start(stall->ms, &file->slow_fd, &file->slow_disk))
        return -1;
    file->via = FSYNC_VIA_FUSE;
    log_line("fsync via=fuse pid=%d", file->slow_disk);
    return 0;
}

static int prepare_fsync(struct stall *stall, const struct stall_config *config)
{
    struct fsync_state *file = calloc(1, sizeof(*file));

    if (!file) {
        fprintf(stderr, "forwarder: out of memory for the fsync stall\n");
        return -1;
    }
    stall->state = file;
    if (config->fsync_via != FSYNC_VIA_FUSE && !use_disk(file, stall, config))
        return 0;
    return config->fsync_via == FSYNC_VIA_DISK ? -1 : use_slow_disk(file, stall);
}

/* A stall that was too short is corrected at once, one that was too long by a quarter: a disk that others use
 * for a moment says little about the next stall. */
static void follow_disk(struct fsync_state *file, unsigned ms, uint64_t took_ns)
{
    unsigned wanted = corrected_writes(file->writes, ms, took_ns);

    file->writes = wanted > file->writes ? wanted : (3 * file->writes + wanted + 2) / 4;
}

static int run_fsync(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns)
{
    struct fsync_state *file = stall->state;
    bool in_order;

    if (file->via == FSYNC_VIA_FUSE)
        return dirty_one_page(file->slow_fd) ? -1 : timed_fsync(file->slow_fd, start_ns, end_ns);
    if (stall_on_disk(file, start_ns, end_ns, &in_order))
        return -1;
    follow_disk(file, stall->ms, *end_ns - *start_ns);
    return in_order ? 0 : -1;
}

static void finish_fsync(struct stall *stall)
{
    struct fsync_state *file = stall->state;

    if (!file)
        return;
    if (file->via == FSYNC_VIA_DISK)
        disk_writer_stop(&file->writer);
    if (file->via == FSYNC_VIA_FUSE)
        slow_disk_stop(file->slow_fd, file->slow_disk);
    free(file);
    stall->state = NULL;
}

const struct stall_kind stall_kind_fsync = {
    .name = "fsync", .prepare = prepare_fsync, .run = run_fsync, .finish = finish_fsync};
