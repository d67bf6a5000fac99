/* Which programs are of Go. */
#include "triggers/golang.h"
#include "triggers/elf_read.h"

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

/* The note is looked for in bytes, not by the headers: a program without these has it too. */
ssize_t trg_elf_golang(int fd, const void *question, size_t size, void *answer, size_t room)
{
    unsigned char pages[FIRST_PAGES];
    ssize_t n = pread(fd, pages, sizeof(pages), 0);

    (void)question;
    (void)size;
    if (n < 0)
        return -1;
    if (!room || !has_note(pages, (size_t)n))
        return 0;
    *(char *)answer = 1;
    return 1;
}

static bool is_golang(struct st_confined *child, const char *path)
{
    char is;
    ssize_t n = trg_elf_ask(child, path, "tell whether Go made", trg_elf_golang, NULL, 0, &is, 1, NULL, NULL);

    return n > 0;
}

/* The program that execvp(3) would run. */
static bool command_is_golang(struct st_confined *child, const char *name)
{
    const char *at = getenv("PATH");
    char path[PATH_MAX];

    if (strchr(name, '/'))
        return is_golang(child, name);
    for (; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (!access(path, X_OK))
            return is_golang(child, path);
    }
    return false;
}

static bool are_golang(struct st_confined *child, const struct st_target *target)
{
    char path[64];

    if (target->kind == ST_TARGET_COMMAND)
        return command_is_golang(child, target->argv[0]);
    if (target->kind == ST_TARGET_ALL || !target->npids)
        return false;
    for (size_t i = 0; i < target->npids; i++) {
        snprintf(path, sizeof(path), "/proc/%d/exe", target->pids[i]);
        if (!is_golang(child, path))
            return false;
    }
    return true;
}

bool trg_is_golang(const struct st_target *target)
{
    struct st_confined child = {0};
    bool are = are_golang(&child, target);

    st_confined_close(&child);
    return are;
}
