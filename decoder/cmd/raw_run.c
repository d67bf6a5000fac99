/* Decodes raw traces over the images that were named. */
#include "base/infile.h"
#include "decoder/cmd/raw.h"

#include "decoder/cmd/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RAW_PID = 1 };

static int map_image(const struct dec_raw_image *image, struct dec_raw_result *result, struct st_error *err)
{
    struct dec_image_id id = {.path = image->file, .pid = RAW_PID};
    struct dec_image *file;
    int rc = dec_images_get(result->images, &id, &file, err);
    if (rc)
        return rc;
    if (file->state != DEC_IMAGE_OK)
        return st_fail(err, ST_EFAIL, "cannot open the image %s: %s", image->file, file->detail);
    if (image->offset >= file->size)
        return st_fail(err, ST_EUSAGE, "the image %s has no offset 0x%llx: it ends at 0x%llx", image->file,
                       (unsigned long long)image->offset, (unsigned long long)file->size);
    uint64_t size = file->size - image->offset;
    if (image->size && image->size < size)
        size = image->size;
    for (size_t i = 0; i < dec_space_count(result->space); i++) {
        const struct dec_mapping *other = dec_space_at(result->space, i);
        bool before = image->address <= other->start && other->start - image->address < size;
        if (before || (image->address > other->start && image->address < other->end))
            return st_fail(err, ST_EUSAGE, "the images %s at 0x%llx and %s at 0x%llx overlap", image->file,
                           (unsigned long long)image->address, other->image->path,
                           (unsigned long long)other->start);
    }
    return dec_space_map(result->space, 0, image->address, size, image->offset, file, err);
}

static int read_all(int fd, uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return -1;
        }
        done += (size_t)n;
    }
    return 0;
}

static int read_trace(const char *path, struct dec_piece *piece, struct st_error *err)
{
    struct stat status;
    int fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd < 0 && errno == ENODEV)
        return st_fail(err, ST_EFAIL, "cannot read the trace %s: it is no regular file", path);
    if (fd < 0 || fstat(fd, &status)) {
        if (fd >= 0)
            close(fd);
        return st_fail_errno(err, ST_EFAIL, "cannot open the trace %s", path);
    }
    int rc = 0;
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    if (!bytes)
        rc = st_nomem(err, "the trace");
    else if (read_all(fd, bytes, (size_t)status.st_size))
        rc = st_fail_errno(err, ST_EFAIL, "cannot read the trace %s", path);
    close(fd);
    if (rc) {
        free(bytes);
        return rc;
    }
    *piece = (struct dec_piece){.bytes = bytes, .size = (size_t)status.st_size};
    return 0;
}

struct raw_where {
    const struct dec_space *space;
};

static int where(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    const struct raw_where *raw = ctx;
    (void)time;
    *where = (struct dec_where){
        .pid = RAW_PID, .tid = (int32_t)ring + 1, .cpu = -1, .space = raw->space, .until = UINT64_MAX};
    return 0;
}

unsigned dec_raw_threads(const struct dec_raw *raw)
{
    long online = raw->threads ? raw->threads : sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

static int run_trace(const struct dec_raw *raw, size_t i, dec_emit_fn *emit, void *emit_ctx,
                     struct dec_raw_result *result, struct st_error *err)
{
    struct dec_piece piece;
    struct raw_where ctx = {.space = result->space};
    struct dec_flow_options options = {.config = raw->config,
                                       .ring = (uint32_t)i,
                                       .threads = dec_raw_threads(raw),
                                       .reference = raw->reference,
                                       .where = where,
                                       .where_ctx = &ctx,
                                       .emit = emit,
                                       .emit_ctx = emit_ctx};
    options.config.has_time = true;
    int rc = read_trace(raw->traces.at[i], &piece, err);
    if (rc)
        return rc;
    rc = dec_flow_run(&options, &piece, 1, &result->counts, err);
    free((void *)(uintptr_t)piece.bytes);
    return rc;
}

int dec_raw_open(const struct dec_raw *raw, struct dec_raw_result *result, struct st_error *err)
{
    memset(result, 0, sizeof(*result));
    if (raw->traces.n == 0)
        return st_fail(err, ST_EUSAGE, "no trace was named");
    int rc = dec_images_new(NULL, &result->images, err);
    if (rc == 0)
        rc = dec_space_new(NULL, &result->space, err);
    for (size_t i = 0; rc == 0 && i < raw->images.n; i++)
        rc = map_image(&raw->images.at[i], result, err);
    if (rc)
        dec_raw_result_free(result);
    return rc;
}

int dec_raw_run(const struct dec_raw *raw, dec_emit_fn *emit, void *emit_ctx, struct dec_raw_result *result,
                struct st_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < raw->traces.n; i++)
        rc = run_trace(raw, i, emit, emit_ctx, result, err);
    return rc;
}

int dec_raw_packets(const struct dec_raw *raw, FILE *out, struct st_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < raw->traces.n; i++) {
        struct dec_piece piece;
        rc = read_trace(raw->traces.at[i], &piece, err);
        if (rc)
            break;
        rc = dec_dump_packets(out, &raw->config, (uint32_t)i, &piece, 1, err);
        free((void *)(uintptr_t)piece.bytes);
    }
    return rc;
}

void dec_raw_result_free(struct dec_raw_result *result)
{
    dec_space_free(result->space);
    dec_images_free(result->images);
    result->space = NULL;
    result->images = NULL;
}
