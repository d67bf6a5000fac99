/* Questions to a child without privilege about the files of a target. */
#include "base/infile.h"
#include "triggers/elf_read.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t trg_elf_ask(struct st_confined *c, const char *path, const char *what, st_confined_fn *fn,
                    const void *question, size_t size, void *answer, size_t room, uint64_t *length,
                    struct st_error *err)
{
    char sentence[PATH_MAX + 300];
    struct st_error why = {0};
    struct st_confined_question q = {.what = sentence, .fn = fn, .bytes = question, .size = size};
    struct stat st = {0};
    int fd, error;
    ssize_t n;

    snprintf(sentence, sizeof(sentence), "%s '%s'", what, path);
    fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd < 0 || fstat(fd, &st)) {
        error = errno;
        n = st_fail_errno(err, ST_EFAIL, "cannot %s", sentence);
        if (fd >= 0)
            close(fd);
        errno = error;
        return n;
    }
    q.fd = fd;
    n = st_confined_ask(c, &q, answer, room, err ? err : &why);
    close(fd);
    if (n < 0 && !err)
        st_confined_say(c, &why);
    if (length)
        *length = (uint64_t)st.st_size;
    return n;
}
