/* Folders and files of a test. */
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

int scratch_setup(void **state)
{
    char *folder = strdup("/tmp/st-perfdata-XXXXXX");

    *state = folder;
    return folder && mkdtemp(folder) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int scratch_teardown(void **state)
{
    int rc = nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);

    free(*state);
    return rc;
}

const char *scratch_path(void **state, const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, PATH_MAX, "%s/%s", (const char *)*state, name);
    return path;
}

size_t scratch_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return n;
}

void file_add(struct file *file, const void *data, size_t n)
{
    assert_int_equal(st_vec_reserve(&file->bytes, n + 1), 0);
    memcpy(file->bytes.at + file->bytes.n, data, n);
    file->bytes.n += n;
}

void file_read(struct file *file, const char *path)
{
    char chunk[4096];
    FILE *f = fopen(path, "re");
    size_t n;

    assert_non_null(f);
    file->bytes.n = 0;
    while ((n = fread(chunk, 1, sizeof(chunk), f)))
        file_add(file, chunk, n);
    assert_false(ferror(f));
    fclose(f);
}

void file_write(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}
