/* Which programs are of Go. */
#include "triggers/golang.h"
#include "base/infile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PAGES = 16384 };

/* A note's header and name: 4 bytes of name, so many of build id, type 4 (ELF_NOTE_GOBUILDID_TAG), "Go". */
static bool has_note(const unsigned char *at, size_t n)
{
    static const unsigned char type_and_name[] = {4, 0, 0, 0, 'G', 'o', 0, 0};

    for (size_t i = 8; i + sizeof(type_and_name) <= n; i += 4)
        if (at[i - 8] == 4 && !memcmp(at + i, type_and_name, sizeof(type_and_name)))
            return true;
    return false;
}

static bool is_golang(const char *path)
{
    unsigned char *pages = malloc(FIRST_PAGES);
    int fd = pages ? st_infile_open(path, ST_INFILE_FILE) : -1;
    ssize_t n = fd >= 0 ? pread(fd, pages, FIRST_PAGES, 0) : 0;
    bool is = n > 0 && has_note(pages, (size_t)n);

    if (fd >= 0)
        close(fd);
    free(pages);
    return is;
}

/* The program that execvp(3) would run. */
static bool command_is_golang(const char *name)
{
    const char *at = getenv("PATH");
    char path[PATH_MAX];

    if (strchr(name, '/'))
        return is_golang(name);
    for (; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (!access(path, X_OK))
            return is_golang(path);
    }
    return false;
}

bool trg_is_golang(const struct st_target *target)
{
    char path[64];

    if (target->kind == ST_TARGET_COMMAND)
        return command_is_golang(target->argv[0]);
    if (target->kind == ST_TARGET_ALL || !target->npids)
        return false;
    for (size_t i = 0; i < target->npids; i++) {
        snprintf(path, sizeof(path), "/proc/%d/exe", target->pids[i]);
        if (!is_golang(path))
            return false;
    }
    return true;
}
