/* SQLite opens files by path alone. Its open(2) can be replaced (sqlite3_vfs.xSetSystemCall): one name stands
 * for the descriptor. */
#include "tracedb/descriptor.h"
#include "base/infile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SQLITE_PATH_MAX = 512 }; /* MAX_PATHNAME of its unix VFS */

static const char name[] = "/stalltrap.descriptor";

static int given = -1;

static int (*usual_open)(const char *, int, int);

static int open_given(const char *path, int flags, int mode)
{
    if (given < 0 || strcmp(path, name) != 0)
        return usual_open(path, flags, mode);
    return fcntl(given, F_DUPFD_CLOEXEC, 3);
}

static int replace_open(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");

    if (usual_open)
        return SQLITE_OK;
    if (!vfs || vfs->iVersion < 3)
        return SQLITE_ERROR;
    usual_open = (int (*)(const char *, int, int))vfs->xGetSystemCall(vfs, "open");
    return usual_open ? vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_given) : SQLITE_ERROR;
}

static int open_by_name(int fd, sqlite3 **db, int flags)
{
    int rc = sqlite3_initialize();

    if (!rc)
        rc = replace_open();
    if (rc)
        return rc;
    given = fd;
    return sqlite3_open_v2(name, db, flags, "unix");
}

int tdb_open_descriptor(int fd, sqlite3 **db)
{
    return open_by_name(fd, db, SQLITE_OPEN_READWRITE);
}

/* SQLite looks at the path from the root, without links, and puts "-journal" behind it. */
static bool too_long(const char *path)
{
    char whole[PATH_MAX];

    return realpath(path, whole) && strlen(whole) > SQLITE_PATH_MAX - sizeof("-journal");
}

int tdb_open_path(const char *path, sqlite3 **db)
{
    int fd, rc;

    if (!too_long(path))
        return sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL);
    fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd < 0)
        return SQLITE_CANTOPEN;
    rc = open_by_name(fd, db, SQLITE_OPEN_READONLY);
    given = -1;
    close(fd);
    return rc;
}

static int attach_name(sqlite3 *db, const char *path)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, "ATTACH ?1 AS b", -1, &stmt, NULL);

    if (rc)
        return rc;
    sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
    rc = sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int tdb_attach(sqlite3 *db, const char *path)
{
    int fd, rc;

    if (!too_long(path))
        return attach_name(db, path);
    fd = st_infile_open(path, ST_INFILE_FILE);
    rc = fd < 0 ? SQLITE_CANTOPEN : replace_open();
    given = fd;
    if (!rc)
        rc = attach_name(db, name);
    given = -1;
    if (fd >= 0)
        close(fd);
    return rc;
}
