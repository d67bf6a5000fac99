/* Maps a file and steps through its records. */
#include "perfdata/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int bad(struct st_error *err, const char *place, const char *fmt, va_list ap)
{
    char why[512];

    vsnprintf(why, sizeof(why), fmt, ap);
    return st_fail(err, ST_EBADFILE, "%s: %s", place, why);
}

int pd_bad_record(struct st_error *err, const char *file, uint64_t offset, uint32_t type, const char *fmt,
                  ...)
{
    char place[768];
    va_list ap;

    snprintf(place, sizeof(place), "%.640s: at offset 0x%" PRIx64 ": %s (%u)", file, offset,
             pd_record_name(type), type);
    va_start(ap, fmt);
    bad(err, place, fmt, ap);
    va_end(ap);
    return ST_EBADFILE;
}

int pd_bad_place(struct st_error *err, const char *file, uint64_t offset, const char *fmt, ...)
{
    char place[768];
    va_list ap;

    snprintf(place, sizeof(place), "%.640s: at offset 0x%" PRIx64, file, offset);
    va_start(ap, fmt);
    bad(err, place, fmt, ap);
    va_end(ap);
    return ST_EBADFILE;
}

/* A pipe's bytes in a file that exists in memory only. Returns its descriptor or a code. */
static int spool(int fd, const char *name, struct st_error *err)
{
    int copy = memfd_create("stalltrap", MFD_CLOEXEC);
    char chunk[65536];
    ssize_t n = 0;

    if (copy < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot make room for '%s'", name);
    while (n >= 0 || errno == EINTR) {
        n = read(fd, chunk, sizeof(chunk));
        if (n == 0)
            return copy;
        if (n > 0 && write(copy, chunk, (size_t)n) != n)
            n = -1;
    }
    st_fail_errno(err, ST_EFAIL, "cannot read '%s'", name);
    close(copy);
    return ST_EFAIL;
}

static int map_file(struct pd_part *part, int fd, struct st_error *err)
{
    struct stat st;
    void *map;

    if (fstat(fd, &st))
        return st_fail_errno(err, ST_EFAIL, "cannot read '%s'", part->name);
    part->size = (uint64_t)st.st_size;
    if (part->size == 0)
        return 0;
    map = mmap(NULL, part->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return st_fail_errno(err, ST_EFAIL, "cannot map '%s'", part->name);
    part->map = map;
    return 0;
}

static int map_any(struct pd_part *part, int fd, struct st_error *err)
{
    struct stat st;
    int copy, rc;

    if (fstat(fd, &st))
        return st_fail_errno(err, ST_EFAIL, "cannot read '%s'", part->name);
    if (S_ISREG(st.st_mode))
        return map_file(part, fd, err);
    if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
        return st_fail(err, ST_EFAIL, "cannot read '%s': it is neither a file nor a pipe", part->name);
    copy = spool(fd, part->name, err);
    if (copy < 0)
        return copy;
    rc = map_file(part, copy, err);
    close(copy);
    return rc;
}

int pd_part_open(int fd, const char *name, struct pd_part **out, struct st_error *err)
{
    struct pd_part *part = calloc(1, sizeof(*part));
    int rc;

    if (!part || !(part->name = strdup(name))) {
        free(part);
        return st_nomem(err, "reading a perf.data file");
    }
    rc = map_any(part, fd, err);
    if (rc) {
        pd_part_close(part);
        return rc;
    }
    part->end = part->size;
    *out = part;
    return 0;
}

void pd_part_forget(const struct pd_part *part, const uint8_t *bytes, uint64_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t from = ((uintptr_t)bytes + page) & ~page, to = ((uintptr_t)bytes + size) & ~page;

    /* Of a private mapping of a file that nothing wrote to, this drops what can be read again. */
    if (part->map && bytes >= part->map && bytes < part->map + part->size && from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

void pd_part_close(struct pd_part *part)
{
    if (!part)
        return;
    if (part->map)
        munmap((void *)part->map, part->size);
    for (size_t i = 0; i < part->copies.n; i++)
        free(part->copies.at[i]);
    for (size_t i = 0; i < part->blocks.n; i++)
        free(part->blocks.at[i].data);
    st_vec_free(&part->copies);
    st_vec_free(&part->blocks);
    ZSTD_freeDStream(part->zstd);
    free(part->name);
    free(part);
}

/* Some bytes of a record, or of the trace behind it, are not there. */
static int too_long(const struct pd_part *part, uint64_t at, uint32_t type, const char *what, uint64_t need,
                    uint64_t there, struct st_error *err)
{
    if (part->end >= part->size)
        return pd_bad_record(err, part->name, at, type,
                             "the file ends within %s (%" PRIu64 " of %" PRIu64 " bytes are there)", what,
                             there, need);
    return pd_bad_record(err, part->name, at, type,
                         "%s of %" PRIu64 " bytes goes beyond the end of the data at 0x%" PRIx64, what, need,
                         part->end);
}

/* What follows a record of a few types without being counted in its size. */
static uint64_t payload_bytes(const struct pd_span *span)
{
    uint64_t size64;
    uint32_t size32;

    if (span->header.type == PD_RECORD_AUXTRACE && span->header.size >= sizeof(struct pd_auxtrace)) {
        memcpy(&size64, span->bytes + offsetof(struct pd_auxtrace, size), sizeof(size64));
        return size64;
    }
    if (span->header.type == PD_RECORD_HEADER_TRACING_DATA &&
        span->header.size >= sizeof(span->header) + sizeof(size32)) {
        memcpy(&size32, span->bytes + offsetof(struct pd_tracing_data, size), sizeof(size32));
        return size32;
    }
    return 0;
}

int pd_part_span(const struct pd_part *part, uint64_t at, struct pd_span *span, struct st_error *err)
{
    uint64_t end = part->end < part->size ? part->end : part->size;
    uint64_t left = end - at;
    uint64_t payload;

    if (left < sizeof(span->header))
        return pd_bad_place(err, part->name, at, "the %s within the header of a record",
                            part->end >= part->size ? "file ends" : "data end");
    memset(span, 0, sizeof(*span));
    span->bytes = part->map + at;
    memcpy(&span->header, span->bytes, sizeof(span->header));
    if (span->header.size < sizeof(span->header))
        return pd_bad_record(err, part->name, at, span->header.type,
                             "its size %u is less than the size of its header", span->header.size);
    if (span->header.type < PD_RECORD_HEADER_ATTR && span->header.size % 8)
        return pd_bad_record(err, part->name, at, span->header.type, "its size %u is no multiple of 8",
                             span->header.size);
    if (span->header.type == 0)
        return pd_bad_record(err, part->name, at, 0, "there is no such record");
    if (span->header.size > left)
        return too_long(part, at, span->header.type, "it", span->header.size, left, err);
    left -= span->header.size;
    payload = payload_bytes(span);
    if (payload > left)
        return too_long(part, at, span->header.type, "its trace", payload, left, err);
    if (payload) {
        span->payload = span->bytes + span->header.size;
        span->payload_size = payload;
    }
    span->next = at + span->header.size + payload;
    return 0;
}

const struct perf_event_header *pd_part_aligned(struct pd_part *part, struct pd_cursor *cursor,
                                                const struct pd_span *span)
{
    void *copy;

    if ((uintptr_t)span->bytes % 8 == 0)
        return (const void *)span->bytes;
    if (cursor->copy < part->copies.n)
        return part->copies.at[cursor->copy++];
    copy = malloc(span->header.size);
    if (!copy || st_vec_push(&part->copies, copy)) {
        free(copy);
        return NULL;
    }
    cursor->copy++;
    return memcpy(copy, span->bytes, span->header.size);
}
