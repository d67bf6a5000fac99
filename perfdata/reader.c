/* Opens a perf.data in each of its forms. */
#include "perfdata/reader.h"
#include "perfdata/reader_state.h"

#include "base/infile.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int add_part(struct pd_reader *reader, int fd, const char *name, struct st_error *err)
{
    struct pd_part *part;
    int rc = pd_part_open(fd, name, &part, err);

    if (rc)
        return rc;
    if (st_vec_push(&reader->parts, part)) {
        pd_part_close(part);
        return st_nomem(err, "reading a perf.data file");
    }
    return 0;
}

/* `fd` is closed. */
static int add_opened(struct pd_reader *reader, int fd, const char *path, struct st_error *err)
{
    int rc;

    if (fd < 0 && errno == ENODEV)
        return st_fail(err, ST_EFAIL, "cannot read '%s': it is no regular file", path);
    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot open '%s'", path);
    rc = add_part(reader, fd, path, err);
    close(fd);
    return rc;
}

static int check_magic(const struct pd_part *part, struct st_error *err)
{
    if (part->size < sizeof(struct pd_pipe_header))
        return st_fail(err, ST_EBADFILE, "%s: it is no perf.data: %" PRIu64 " bytes are too few", part->name,
                       part->size);
    if (!memcmp(part->map, PD_MAGIC, 8))
        return 0;
    if (!memcmp(part->map, "2ELIFREP", 8))
        return pd_bad_place(err, part->name, 0, "it was written on a machine of the other byte order");
    if (!memcmp(part->map, "PERFFILE", 8))
        return pd_bad_place(err, part->name, 0,
                            "it was written by a perf from before 2010, whose format is not known");
    return pd_bad_place(err, part->name, 0, "it is no perf.data (it does not begin with %s)", PD_MAGIC);
}

static int seal(struct pd_reader *reader, struct st_error *err)
{
    struct st_error why = {0};
    int rc = pd_events_seal(&reader->events, &why);

    return rc ? pd_bad_place(err, reader->parts.at[0]->name, offsetof(struct pd_file_header, attrs), "%s",
                             why.text)
              : 0;
}

static int read_header(struct pd_reader *reader, struct st_error *err)
{
    const struct pd_part *part = reader->parts.at[0];
    const size_t field = offsetof(struct pd_file_header, size);
    struct pd_file_header header = {0};
    int rc = check_magic(part, err);

    if (rc)
        return rc;
    memcpy(&header, part->map, part->size < sizeof(header) ? part->size : sizeof(header));
    if (header.size == sizeof(struct pd_pipe_header))
        return pd_read_pipe_form(reader, err);
    /* The first files of this format had no bitmap of features. */
    if (header.size == offsetof(struct pd_file_header, features))
        memset(header.features, 0, sizeof(header.features));
    else if (header.size != sizeof(header))
        return pd_bad_place(err, part->name, field, "a header of %" PRIu64 " bytes cannot be", header.size);
    if (part->size < header.size)
        return pd_bad_place(err, part->name, field,
                            "the file ends within its header (%" PRIu64 " of %" PRIu64 " bytes)", part->size,
                            header.size);
    rc = pd_read_file_form(reader, &header, err);
    return rc ? rc : seal(reader, err);
}

static int finish_open(struct pd_reader *reader, struct pd_reader **out, struct st_error *err)
{
    int rc = read_header(reader, err);

    if (!rc)
        rc = pd_apply_features(reader, err);
    if (!rc)
        *out = reader;
    return rc;
}

static struct pd_reader *new_reader(struct st_error *err)
{
    struct pd_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        st_nomem(err, "reading a perf.data file");
    return reader;
}

int pd_reader_open_fd(int fd, const char *name, struct pd_reader **out, struct st_error *err)
{
    struct pd_reader *reader = new_reader(err);
    int rc;

    if (!reader)
        return ST_ENOMEM;
    rc = add_part(reader, fd, name, err);
    if (!rc)
        rc = finish_open(reader, out, err);
    if (rc)
        pd_reader_close(reader);
    return rc;
}

/* "data.12" -> 12, anything else -> -1. */
static long part_number(const char *name)
{
    char *end;
    long n;

    if (strncmp(name, "data.", 5) || name[5] < '0' || name[5] > '9')
        return -1;
    errno = 0;
    n = strtol(name + 5, &end, 10);
    return *end || errno ? -1 : n;
}

static int by_size(const void *a, const void *b)
{
    const long *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int add_file_of(struct pd_reader *reader, const char *folder, const char *name, struct st_error *err)
{
    char *path;
    int rc;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return st_nomem(err, "the name of a file");
    rc = add_opened(reader, st_infile_open(path, ST_INFILE_FILE), path, err);
    free(path);
    return rc;
}

/* perf record --threads writes a file a thread beside the one with the header: records and nothing else. */
static int add_thread_parts(struct pd_reader *reader, DIR *dir, const char *folder, struct st_error *err)
{
    ST_VEC(long) numbers = {0};
    const struct dirent *entry;
    int rc = 0;

    while (!rc && (entry = readdir(dir)))
        if (part_number(entry->d_name) >= 0 && st_vec_push(&numbers, part_number(entry->d_name)))
            rc = st_nomem(err, "the names of files");
    if (!rc && numbers.n)
        qsort(numbers.at, numbers.n, sizeof(numbers.at[0]), by_size);
    for (size_t i = 0; i < numbers.n && !rc; i++) {
        char name[32];

        snprintf(name, sizeof(name), "data.%ld", numbers.at[i]);
        rc = add_file_of(reader, folder, name, err);
    }
    st_vec_free(&numbers);
    return rc;
}

static int find_kcore(struct pd_reader *reader, const char *folder, struct st_error *err)
{
    int fd;

    if (asprintf(&reader->kcore_dir, "%s/kcore_dir", folder) < 0) {
        reader->kcore_dir = NULL;
        return st_nomem(err, "the name of a folder");
    }
    fd = st_infile_open(reader->kcore_dir, ST_INFILE_FOLDER);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    free(reader->kcore_dir);
    reader->kcore_dir = NULL;
    return 0;
}

/* `fd` is closed. */
static int add_folder(struct pd_reader *reader, int fd, const char *folder, struct st_error *err)
{
    DIR *dir = fdopendir(fd);
    int rc;

    if (!dir) {
        close(fd);
        return st_fail_errno(err, ST_EFAIL, "cannot list '%s'", folder);
    }
    rc = add_file_of(reader, folder, "data", err);
    if (rc == ST_EFAIL && errno == ENOENT)
        rc = st_fail(err, ST_EBADFILE, "%s: it is a folder, but no perf.data: it holds no file 'data'",
                     folder);
    if (!rc)
        rc = add_thread_parts(reader, dir, folder, err);
    closedir(dir);
    return rc ? rc : find_kcore(reader, folder, err);
}

int pd_reader_open(const char *path, struct pd_reader **out, struct st_error *err)
{
    struct pd_reader *reader = new_reader(err);
    struct stat st;
    int fd, rc;

    if (!reader)
        return ST_ENOMEM;
    fd = st_infile_open(path, ST_INFILE_INPUT);
    if (fd < 0 && errno == ENODEV)
        rc = st_fail(err, ST_EFAIL, "cannot read '%s': it is neither a file nor a pipe", path);
    else if (fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode))
        rc = add_folder(reader, fd, path, err);
    else
        rc = add_opened(reader, fd, path, err);
    if (!rc)
        rc = finish_open(reader, out, err);
    if (rc)
        pd_reader_close(reader);
    return rc;
}

void pd_reader_forget(const struct pd_reader *reader, const void *bytes, uint64_t size)
{
    for (size_t i = 0; i < reader->parts.n; i++)
        pd_part_forget(reader->parts.at[i], bytes, size);
}

void pd_reader_close(struct pd_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->parts.n; i++)
        pd_part_close(reader->parts.at[i]);
    st_vec_free(&reader->parts);
    st_vec_free(&reader->build_ids);
    pd_events_free(&reader->events);
    free(reader->kcore_dir);
    free(reader);
}

size_t pd_reader_nevents(const struct pd_reader *reader)
{
    return reader->events.list.n;
}

const struct pd_event *pd_reader_event(const struct pd_reader *reader, size_t index)
{
    return index < reader->events.list.n ? &reader->events.list.at[index].event : NULL;
}

const char *pd_reader_kcore_dir(const struct pd_reader *reader)
{
    return reader->kcore_dir;
}
