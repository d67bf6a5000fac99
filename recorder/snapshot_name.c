/* PREFIX.N.data and PREFIX.N.db. */
#include "recorder/snapshot_name.h"
#include "base/outfile.h"
#include "base/tempfiles.h"
#include "base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int rec_snapshot_next(const char *prefix, unsigned *n, struct st_error *err)
{
    const char *slash = strrchr(prefix, '/');
    const char *name = slash ? slash + 1 : prefix;
    char folder[PATH_MAX];
    ST_VEC(unsigned long) taken = {0};
    unsigned long highest = 0;
    struct dirent *e;
    int rc = 0;
    DIR *d;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - prefix) + 1 : 1, slash ? prefix : ".");
    d = opendir(folder);
    if (!d)
        return st_fail_errno(err, ST_EFAIL, "cannot look for earlier snapshots in '%s'", folder);
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
    const char *slash = strrchr(prefix, '/');
    char name[NAME_MAX + 1];
    int n = snprintf(name, sizeof(name), "%s.", slash ? slash + 1 : prefix);

    if (n > 0 && (size_t)n < sizeof(name))
        st_tempfile_sweep(folder, name);
}

int rec_snapshot_check(const char *prefix, struct st_error *err)
{
    char *path = rec_snapshot_path(prefix, 1, "data");
    struct st_outfile probe;
    unsigned n;
    int rc;

    if (!path)
        return st_nomem(err, "a file name");
    rc = rec_snapshot_next(prefix, &n, err);
    if (!rc)
        rc = st_outfile_open(&probe, path, err);
    if (!rc)
        sweep(probe.folder, prefix);
    if (!rc)
        st_outfile_abort(&probe);
    free(path);
    if (rc)
        st_hint(err, "-o PREFIX says where snapshots go (now: %s)", prefix);
    return rc;
}

char *rec_snapshot_path(const char *prefix, unsigned n, const char *suffix)
{
    char *path;

    return asprintf(&path, "%s.%u.%s", prefix, n, suffix) < 0 ? NULL : path;
}
