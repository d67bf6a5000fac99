/* Code that nobody finds by its mapping's name. */
#include "recorder/code_files.h"
#include "recorder/code_elf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t most_bytes = 512ull << 20;

struct adder {
    struct rec_code_files *files;

    pid_t pid;

    int memory; /* /proc/PID/mem, or -1 */

    bool failed;
};

int rec_code_files_open(struct rec_code_files *files, const char *data, struct st_error *err)
{
    static const char suffix[] = ".data";
    size_t len = strlen(data);
    char *cwd = data[0] == '/' ? strdup("") : getcwd(NULL, 0);
    int n;

    *files = (struct rec_code_files){.left = most_bytes};
    if (!cwd)
        return st_fail_errno(err, ST_EFAIL, "cannot tell the current folder");
    if (len > sizeof(suffix) && !strcmp(data + len - (sizeof(suffix) - 1), suffix))
        len -= sizeof(suffix) - 1;
    n = snprintf(files->folder, sizeof(files->folder), "%s%s%.*s.code", cwd, *cwd ? "/" : "", (int)len, data);
    free(cwd);
    if (n < 0 || (size_t)n >= sizeof(files->folder))
        return st_fail(err, ST_EFAIL, "the name of a folder beside '%s' is too long", data);
    return 0;
}

static int make_folder(struct rec_code_files *files, struct st_error *err)
{
    if (files->made)
        return 0;
    if (mkdir(files->folder, 0700))
        return st_fail_errno(err, ST_EFAIL, "cannot make the folder '%s'", files->folder);
    files->made = true;
    return 0;
}

/* The kernel adds " (deleted)" to the name in /proc, or in a record, from the moment the file has none. */
static size_t name_length(const char *name)
{
    static const char mark[] = " (deleted)";
    size_t len = strlen(name);

    if (len > sizeof(mark) - 1 && !strcmp(name + len - (sizeof(mark) - 1), mark))
        len -= sizeof(mark) - 1;
    return len;
}

/* The last part of the mapping's name as a file name: "libfoo.so", "jit-4312-7f0000001000.so"; behind a
 * number where another file has it already. */
static int create(const struct adder *a, const struct rec_map *map, char *path, size_t size,
                  struct st_error *err)
{
    const char *slash = strrchr(map->name, '/');
    char base[128];
    int fd;

    if (map->ino)
        snprintf(base, sizeof(base), "%.100s", slash ? slash + 1 : map->name);
    else
        snprintf(base, sizeof(base), "jit-%d-%" PRIx64 ".so", a->pid, map->start);
    base[name_length(base)] = '\0';
    snprintf(path, size, "%.3800s/%s%s", a->files->folder, base[0] == '.' || !base[0] ? "_" : "", base);
    fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    for (int i = 2; fd < 0 && errno == EEXIST && i < 1000; i++) {
        snprintf(path, size, "%.3800s/%d-%s", a->files->folder, i, base);
        fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    }
    return fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot create '%s'", path) : fd;
}

static int copy_file(int from, int to, uint64_t size, const char *path, struct st_error *err)
{
    while (size) {
        ssize_t n = sendfile(to, from, NULL, size < 1 << 30 ? size : 1 << 30);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
        if (n == 0)
            break;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Remembers that `path` holds the code of the mapping. */
static int note(const struct adder *a, const struct rec_map *map, const char *path, bool whole,
                struct st_error *err)
{
    struct rec_code_file f = {
        .pid = a->pid,
        .start = map->start,
        .end = map->end,
        .pgoff = whole ? map->pgoff : REC_CODE_ELF_TEXT,
        .whole = whole,
        .maj = map->maj,
        .min = map->min,
        .ino = map->ino,
        .name = strndup(map->name, name_length(map->name)),
        .path = strdup(path),
    };

    if (f.name && f.path && !st_vec_push(&a->files->files, f))
        return 0;
    free(f.name);
    free(f.path);
    return st_nomem(err, "the list of copied code");
}

static const char *copied_before(const struct rec_code_files *files, const struct rec_map *map)
{
    for (size_t i = 0; i < files->files.n; i++) {
        const struct rec_code_file *f = &files->files.at[i];

        if (f->whole && f->ino == map->ino && f->maj == map->maj && f->min == map->min)
            return f->path;
    }
    return NULL;
}

/* A copy, by `write` to a new file; a mapping that is larger than what may still be copied is left out. */
static int copy_new(const struct adder *a, const struct rec_map *map, int from, uint64_t size,
                    struct st_error *err)
{
    char path[PATH_MAX];
    int fd, rc;

    if (size > a->files->left)
        return 0;
    a->files->left -= size;
    rc = make_folder(a->files, err);
    if (rc)
        return rc;
    fd = create(a, map, path, sizeof(path), err);
    if (fd < 0)
        return fd;
    if (from >= 0)
        rc = copy_file(from, fd, size, path, err);
    else
        rc = rec_code_elf_write(fd, a->pid, a->memory, map->start, map->end, err);
    if (!rc && fsync(fd))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
    close(fd);
    return rc ? rc : note(a, map, path, from >= 0, err);
}

static int copy_map(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct adder *a = ctx;
    const char *before;
    struct stat st;
    int from, rc;

    /* The snapshot holds the one, and nobody runs the other. */
    if (!strcmp(map->name, "[vdso]") || !strcmp(map->name, "[vsyscall]") || rec_map_findable(map))
        return 0;
    before = copied_before(a->files, map);
    from = before ? -1 : rec_map_open(a->pid, map);
    if (before)
        rc = note(a, map, before, true, err);
    else if (from >= 0 && !fstat(from, &st) && S_ISREG(st.st_mode))
        rc = copy_new(a, map, from, (uint64_t)st.st_size, err);
    else
        rc = a->memory < 0 ? 0 : copy_new(a, map, -1, map->end - map->start, err);
    if (from >= 0)
        close(from);
    a->failed = rc != 0;
    return rc;
}

int rec_code_files_add(struct rec_code_files *files, pid_t pid, struct st_error *err)
{
    struct adder a = {.files = files, .pid = pid, .memory = rec_proc_memory(pid)};
    int rc = rec_proc_maps(pid, copy_map, &a, err);

    if (a.memory >= 0)
        close(a.memory);
    return a.failed ? rc : 0; /* that its mappings cannot be read any more is no failure */
}

const struct rec_code_file *rec_code_files_find(const struct rec_code_files *files,
                                                const struct rec_mmap2_record *map)
{
    size_t len = name_length(map->filename);

    for (size_t i = 0; i < files->files.n; i++) {
        const struct rec_code_file *f = &files->files.at[i];

        if (f->pid == (pid_t)map->pid && map->addr >= f->start && map->addr < f->end &&
            strlen(f->name) == len && !memcmp(f->name, map->filename, len))
            return f;
    }
    return NULL;
}

void rec_code_files_free(struct rec_code_files *files)
{
    for (size_t i = 0; i < files->files.n; i++) {
        free(files->files.at[i].name);
        free(files->files.at[i].path);
    }
    st_vec_free(&files->files);
}

void rec_code_files_abort(struct rec_code_files *files)
{
    DIR *d = files->made ? opendir(files->folder) : NULL;
    struct dirent *e;

    while (d && (e = readdir(d)))
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    if (files->made)
        rmdir(files->folder);
    files->made = false;
    rec_code_files_free(files);
}
