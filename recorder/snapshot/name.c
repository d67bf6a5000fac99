/* PREFIX.N.data and PREFIX.N.db. */
#include "recorder/snapshot/name.h"
#include "base/folder.h"
#include "base/outfile.h"
#include "base/tempfiles.h"
#include "base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 999999999 };

static int by_value(const void *a, const void *b)
{
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

    return x < y ? -1 : x > y;
}

/* The N of "NAME.N.data", "NAME.N.db" or "NAME.N.code", else 0. */
static unsigned long number_of(const char *file, const char *name, size_t len)
{
    unsigned long n;
    char *end;

    if (strncmp(file, name, len) != 0 || file[len] != '.' || !isdigit((unsigned char)file[len + 1]))
        return 0;
    n = strtoul(file + len + 1, &end, 10);
    if (strcmp(end, ".data") != 0 && strcmp(end, ".db") != 0 && strcmp(end, ".code") != 0)
        return 0;
    return n;
}

/* The first number that no file has, where the highest that there can be is taken. */
static unsigned first_free(unsigned long *taken, size_t n)
{
    unsigned free_one = 1;

    qsort(taken, n, sizeof(*taken), by_value);
    for (size_t i = 0; i < n; i++)
        free_one += taken[i] == free_one;
    return free_one;
}

int rec_snapshot_next(int folder, const char *prefix, unsigned *n, struct st_error *err)
{
    const char *name = st_folder_name(prefix);
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    ST_VEC(unsigned long) taken = {0};
    unsigned long highest = 0;
    struct dirent *e;
    int rc = 0;

    if (!d) {
        st_fail_errno(err, ST_EFAIL, "cannot look for earlier snapshots '%s.N.data'", prefix);
        if (copy >= 0)
            close(copy);
        return ST_EFAIL;
    }
    while ((e = readdir(d))) {
        unsigned long found = number_of(e->d_name, name, strlen(name));

        if (!found || found > MOST)
            continue;
        if (found > highest)
            highest = found;
        if (st_vec_push(&taken, found))
            rc = st_nomem(err, "the list of earlier snapshots");
    }
    closedir(d);
    *n = highest < MOST ? (unsigned)highest + 1 : first_free(taken.at, taken.n);
    st_vec_free(&taken);
    return rc;
}

/* What a killed recording or decoding of the same prefix had begun. */
static void sweep(int folder, const char *prefix)
{
    char name[NAME_MAX + 1];
    int n = snprintf(name, sizeof(name), "%s.", st_folder_name(prefix));

    if (n > 0 && (size_t)n < sizeof(name))
        st_tempfile_sweep(folder, name);
}

/* The folder of `path`, in which a file of that name can be created. */
static int open_checked(const char *path, const char *prefix, struct st_error *err)
{
    struct st_outfile probe;
    const char *name;
    unsigned n;
    int folder = st_folder_of(path, &name, err), rc;

    if (folder < 0)
        return folder;
    rc = rec_snapshot_next(folder, prefix, &n, err);
    if (!rc)
        rc = st_outfile_open_at(&probe, folder, name, path, err);
    if (rc) {
        close(folder);
        return rc;
    }
    sweep(folder, prefix);
    st_outfile_abort(&probe);
    return folder;
}

int rec_snapshot_folder(const char *prefix, struct st_error *err)
{
    char *path = rec_snapshot_path(prefix, 1, "data");
    int folder;

    if (!path)
        return st_nomem(err, "a file name");
    folder = open_checked(path, prefix, err);
    free(path);
    if (folder < 0)
        st_hint(err, "-o PREFIX says where snapshots go (now: %s)", prefix);
    return folder;
}

char *rec_snapshot_path(const char *prefix, unsigned n, const char *suffix)
{
    char *path;

    return asprintf(&path, "%s.%u.%s", prefix, n, suffix) < 0 ? NULL : path;
}
