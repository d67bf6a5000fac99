/* Where control sockets are. */
#include "recorder/control_folder.h"
#include "recorder/control.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int own_folder(char *path, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        return snprintf(path, size, "/run/stalltrap");
    if (runtime && runtime[0] == '/')
        return snprintf(path, size, "%s/stalltrap", runtime);
    return snprintf(path, size, "/tmp/stalltrap-%u", (unsigned)geteuid());
}

int rec_control_own_folder(char *path, size_t size, struct st_error *err)
{
    struct stat st;
    int n = own_folder(path, size);

    if (n < 0 || (size_t)n >= size)
        return st_fail(err, ST_EFAIL, "the name of the folder for control sockets is too long");
    mkdir(path, 0700);
    /* Another user could have put something there first. */
    if (lstat(path, &st))
        return st_fail_errno(err, ST_EFAIL, "cannot make the folder '%s'", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return st_fail(err, ST_EFAIL, "'%s' is not a folder that only this user can write to", path);
    return 0;
}

static int each_match(const char *pattern, rec_folder_fn *fn, void *ctx)
{
    glob_t found = {0};
    int rc = 0;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; !rc && i < found.gl_pathc; i++)
            rc = fn(ctx, found.gl_pathv[i]);
    globfree(&found);
    return rc;
}

int rec_control_folders(rec_folder_fn *fn, void *ctx)
{
    static const char *const everybodys[] = {"/run/stalltrap", "/run/user/*/stalltrap", "/tmp/stalltrap-*"};
    char own[PATH_MAX];
    int rc = 0;

    if (geteuid() != 0) {
        own_folder(own, sizeof(own));
        return access(own, X_OK) ? 0 : fn(ctx, own);
    }
    for (size_t i = 0; !rc && i < sizeof(everybodys) / sizeof(everybodys[0]); i++)
        rc = each_match(everybodys[i], fn, ctx);
    return rc;
}
