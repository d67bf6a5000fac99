/* PREFIX.N.data and PREFIX.N.db. */
#include "recorder/snapshot_name.h"
#include "base/outfile.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int rec_snapshot_next(const char *prefix, unsigned *n, struct st_error *err)
{
    const char *slash = strrchr(prefix, '/');
    const char *name = slash ? slash + 1 : prefix;
    char folder[PATH_MAX];
    unsigned long highest = 0;
    struct dirent *e;
    DIR *d;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - prefix) + 1 : 1, slash ? prefix : ".");
    d = opendir(folder);
    if (!d)
        return st_fail_errno(err, ST_EFAIL, "cannot look for earlier snapshots in '%s'", folder);
    while ((e = readdir(d))) {
        unsigned long found = number_of(e->d_name, name, strlen(name));

        if (found > highest && found < 1000000000)
            highest = found;
    }
    closedir(d);
    *n = (unsigned)highest + 1;
    return 0;
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
