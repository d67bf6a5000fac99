/* The command line of raw input, and its decoding over the images that were named. */
#include "decoder/cmd/raw.h"
#include "base/infile.h"
#include "decoder/cmd/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A whole number, decimal or 0x…, that is all of text[0..length). */
static bool number(const char *text, size_t length, uint64_t *value)
{
    char copy[32], *end;
    if (length == 0 || length >= sizeof(copy) || text[0] == '-' || text[0] == '+' || text[0] == ' ')
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *value = strtoull(copy, &end, strncmp(copy, "0x", 2) == 0 ? 16 : 10);
    return errno == 0 && *end == '\0';
}

/* `n` numbers between separators, and nothing else. */
static bool numbers(const char *text, char separator, uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *end = strchr(text, i + 1 < n ? separator : '\0');
        if (!end || !number(text, (size_t)(end - text), &values[i]))
            return false;
        text = end + 1;
    }
    return true;
}

int dec_raw_trace(void *to, const char *text, struct st_error *err)
{
    struct dec_raw *raw = to;
    return st_vec_push(&raw->traces, text) ? st_nomem(err, "the list of traces") : 0;
}

static int add_image(struct dec_raw *raw, const struct dec_raw_image *image, const char *folder,
                     size_t folder_length, const char *file, size_t length, struct st_error *err)
{
    struct dec_raw_image copy = *image;
    bool absolute = file[0] == '/';
    if (asprintf(&copy.file, "%.*s%.*s", absolute ? 0 : (int)folder_length, folder, (int)length, file) < 0)
        return st_nomem(err, "the list of images");
    if (st_vec_push(&raw->images, copy) == 0)
        return 0;
    free(copy.file);
    return st_nomem(err, "the list of images");
}

/* Cuts ":NUMBER" off the end of text[0..*length). */
static bool cut_number(const char *text, size_t *length, uint64_t *value)
{
    const char *colon = memrchr(text, ':', *length);
    if (!colon || colon == text || !number(colon + 1, *length - (size_t)(colon + 1 - text), value))
        return false;
    *length = (size_t)(colon - text);
    return true;
}

int dec_raw_image(void *to, const char *text, struct st_error *err)
{
    struct dec_raw *raw = to;
    struct dec_raw_image image = {0};
    const char *at = strrchr(text, '@');
    uint64_t last, first;
    if (!at || at == text || !number(at + 1, strlen(at + 1), &image.address))
        return st_fail(err, ST_EUSAGE, "--image %s: expected FILE[:OFFSET[:SIZE]]@ADDRESS", text);
    size_t length = (size_t)(at - text);
    if (cut_number(text, &length, &last)) {
        image.offset = last;
        if (cut_number(text, &length, &first)) {
            image.offset = first;
            image.size = last;
        }
    }
    return add_image(raw, &image, "", 0, text, length, err);
}

/* Cuts the last word off line[0..*length). */
static bool cut_word(const char *line, size_t *length, uint64_t *value)
{
    size_t end = *length;
    while (end > 0 && strchr(" \t\r\n", line[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && !strchr(" \t", line[start - 1]))
        start--;
    *length = start;
    return start > 0 && number(line + start, end - start, value);
}

static int add_line(struct dec_raw *raw, const char *list, size_t number_of_line, const char *line,
                    struct st_error *err)
{
    struct dec_raw_image image = {0};
    const char *slash = strrchr(list, '/');
    size_t length = strlen(line);
    size_t blank = strspn(line, " \t\r\n");
    if (blank == length || line[blank] == '#')
        return 0;
    bool good = cut_word(line, &length, &image.address) && cut_word(line, &length, &image.size) &&
                cut_word(line, &length, &image.offset);
    while (good && length > blank && strchr(" \t", line[length - 1]))
        length--;
    if (!good || length == blank)
        return st_fail(err, ST_EUSAGE, "%s: line %zu: expected FILE OFFSET SIZE ADDRESS", list,
                       number_of_line);
    return add_image(raw, &image, list, slash ? (size_t)(slash + 1 - list) : 0, line + blank, length - blank,
                     err);
}

int dec_raw_images(void *to, const char *text, struct st_error *err)
{
    int fd = st_infile_open(text, ST_INFILE_FILE);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    char *line = NULL;
    size_t room = 0, n = 0;
    int rc = 0;
    ((struct dec_raw *)to)->list = text;
    if (!in)
        return st_fail_errno(err, ST_EFAIL, "cannot open the list of images %s", text);
    while (rc == 0 && getline(&line, &room, in) >= 0)
        rc = add_line(to, text, ++n, line, err);
    if (rc == 0 && ferror(in))
        rc = st_fail_errno(err, ST_EFAIL, "cannot read the list of images %s", text);
    free(line);
    fclose(in);
    return rc;
}

int dec_raw_cpu(void *to, const char *text, struct st_error *err)
{
    struct dec_raw *raw = to;
    uint64_t value[3];
    if (!numbers(text, '/', value, 3) || value[0] > 0xffff || value[1] > 0xff || value[2] > 0xff)
        return st_fail(err, ST_EUSAGE, "--cpu %s: expected FAMILY/MODEL/STEPPING, such as 6/158/9", text);
    raw->config.family = (uint16_t)value[0];
    raw->config.model = (uint8_t)value[1];
    raw->config.stepping = (uint8_t)value[2];
    raw->has_cpu = true;
    return 0;
}

int dec_raw_time(void *to, const char *text, struct st_error *err)
{
    struct dec_raw *raw = to;
    uint64_t value[3];
    if (!numbers(text, ':', value, 3) || value[0] == 0 || value[1] > 63)
        return st_fail(err, ST_EUSAGE, "--time %s: expected MULT:SHIFT:ZERO, such as 1076264588:31:0", text);
    raw->config.clock =
        (struct dec_clock){.mult = value[0], .shift = (uint16_t)value[1], .zero = value[2], .known = true};
    raw->has_clock = true;
    return 0;
}

static int small(const char *option, const char *text, uint8_t most, uint8_t *to, struct st_error *err)
{
    uint64_t value;
    if (!number(text, strlen(text), &value) || value > most)
        return st_fail(err, ST_EUSAGE, "--%s %s: expected a number from 0 to %u", option, text, most);
    *to = (uint8_t)value;
    return 0;
}

int dec_raw_mtc_freq(void *to, const char *text, struct st_error *err)
{
    return small("mtc-freq", text, 15, &((struct dec_raw *)to)->config.mtc_freq, err);
}

int dec_raw_nom_freq(void *to, const char *text, struct st_error *err)
{
    return small("nom-freq", text, 255, &((struct dec_raw *)to)->config.nom_freq, err);
}

int dec_raw_cpuid15(void *to, const char *text, struct st_error *err)
{
    struct dec_raw *raw = to;
    uint64_t value[2];
    if (!numbers(text, '/', value, 2) || value[0] > UINT32_MAX || value[1] > UINT32_MAX)
        return st_fail(err, ST_EUSAGE, "--cpuid15 %s: expected EAX/EBX, such as 2/200", text);
    raw->config.cpuid15_eax = (uint32_t)value[0];
    raw->config.cpuid15_ebx = (uint32_t)value[1];
    return 0;
}

int dec_raw_bits(void *to, const char *text, struct st_error *err)
{
    struct dec_raw *raw = to;
    if (strcmp(text, "32") != 0 && strcmp(text, "64") != 0)
        return st_fail(err, ST_EUSAGE, "--bits %s: expected 32 or 64", text);
    raw->config.bits = text[0] == '3' ? 32 : 64;
    return 0;
}

void dec_raw_free(struct dec_raw *raw)
{
    for (size_t i = 0; i < raw->images.n; i++)
        free(raw->images.at[i].file);
    st_vec_free(&raw->images);
    st_vec_free(&raw->traces);
}

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
                                       .terse = raw->terse,
                                       .emit = emit,
                                       .emit_ctx = emit_ctx};
    options.config.has_time = true;
    options.config.event_trace = true; /* it does not say */
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
