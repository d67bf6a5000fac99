/* Code that nobody finds by its mapping's name. */
#include "recorder/code_files.h"
#include "base/folder.h"
#include "recorder/code_elf.h"
#include "recorder/code_names.h"
#include "triggers/memory.h"

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

enum { NAMES_MS = 4000 }; /* for the names of all processes: the recording waits meanwhile */

struct adder {
    struct rec_code_files *files;

    pid_t pid;

    int memory; /* /proc/PID/mem, or -1 */

    bool failed, named;

    struct rec_perf_map names; /* when named */
};

int rec_code_files_open(struct rec_code_files *files, const char *data, struct st_error *err)
{
    return rec_code_files_open_at(files, -1, data, err);
}

int rec_code_files_open_at(struct rec_code_files *files, int folder, const char *data, struct st_error *err)
{
    static const char suffix[] = ".data";
    size_t len = strlen(data);
    char *cwd = data[0] == '/' ? strdup("") : getcwd(NULL, 0);
    const char *name;
    int n;

    *files = (struct rec_code_files){.left = most_bytes, .patience = NAMES_MS, .parent = -1, .fd = -1};
    if (!cwd)
        return st_fail_errno(err, ST_EFAIL, "cannot tell the current folder");
    if (len > sizeof(suffix) && !strcmp(data + len - (sizeof(suffix) - 1), suffix))
        len -= sizeof(suffix) - 1;
    n = snprintf(files->folder, sizeof(files->folder), "%s%s%.*s.code", cwd, *cwd ? "/" : "", (int)len, data);
    free(cwd);
    if (n < 0 || (size_t)n >= sizeof(files->folder))
        return st_fail(err, ST_EFAIL, "the name of a folder beside '%s' is too long", data);
    files->name = (size_t)(st_folder_name(files->folder) - files->folder);
    files->parent = folder < 0 ? st_folder_of(files->folder, &name, err) : fcntl(folder, F_DUPFD_CLOEXEC, 3);
    if (files->parent < 0)
        return folder < 0 ? files->parent
                          : st_fail_errno(err, ST_EFAIL, "cannot make the folder '%s'", files->folder);
    return 0;
}

static int make_folder(struct rec_code_files *files, struct st_error *err)
{
    if (files->fd >= 0)
        return 0;
    files->fd = st_folder_make(files->parent, files->folder + files->name);
    return files->fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot make the folder '%s'", files->folder) : 0;
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
    char base[128], file[NAME_MAX + 1];
    int fd;

    if (map->ino)
        snprintf(base, sizeof(base), "%.100s", slash ? slash + 1 : map->name);
    else
        snprintf(base, sizeof(base), "jit-%d-%" PRIx64 ".so", a->pid, map->start);
    base[name_length(base)] = '\0';
    snprintf(file, sizeof(file), "%s%s", base[0] == '.' || !base[0] ? "_" : "", base);
    fd = st_folder_create(a->files->fd, file);
    for (int i = 2; fd < 0 && errno == EEXIST && i < 1000; i++) {
        snprintf(file, sizeof(file), "%d-%s", i, base);
        fd = st_folder_create(a->files->fd, file);
    }
    snprintf(path, size, "%.3800s/%s", a->files->folder, file);
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

/* Once a process. */
static int read_names(struct adder *a, struct st_error *err)
{
    struct rec_code_unnamed u = {.pid = a->pid};

    if (a->named)
        return 0;
    a->named = true;
    a->files->patience -= rec_code_names_read(a->pid, a->files->patience, &a->names, u.why, sizeof(u.why));
    return *u.why && st_vec_push(&a->files->unnamed, u) ? st_nomem(err, "names of code") : 0;
}

/* A copy, by `write` to a new file; a mapping that is larger than what may still be copied is left out. */
static int copy_new(struct adder *a, const struct rec_map *map, int from, uint64_t size, struct st_error *err)
{
    char path[PATH_MAX];
    int fd, rc;

    if (size > a->files->left)
        return 0;
    a->files->left -= size;
    rc = from < 0 ? read_names(a, err) : 0;
    if (!rc)
        rc = make_folder(a->files, err);
    if (rc)
        return rc;
    fd = create(a, map, path, sizeof(path), err);
    if (fd < 0)
        return fd;
    if (from >= 0)
        rc = copy_file(from, fd, size, path, err);
    else
        rc = rec_code_elf_write(fd, a->memory, map->start, map->end, &a->names, err);
    if (!rc && fsync(fd))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
    st_folder_give(a->files->parent, fd);
    close(fd);
    return rc ? rc : note(a, map, path, from >= 0, err);
}

static int copy_map(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct adder *a = ctx;
    const char *before;
    struct stat st;
    int from, rc;

    /* The snapshot holds the first, nobody runs the second, and the third the kernel gives nobody to read. */
    if (!strcmp(map->name, "[vdso]") || !strcmp(map->name, "[vsyscall]") || !strcmp(map->name, "[uprobes]") ||
        rec_map_findable(map))
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
    struct adder a = {.files = files, .pid = pid, .memory = trg_memory_open(pid)};
    int rc = rec_proc_maps(pid, copy_map, &a, err);

    rec_perf_map_free(&a.names);
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
    st_vec_free(&files->unnamed);
    if (files->fd >= 0) {
        st_folder_give(files->parent, files->fd);
        close(files->fd);
    }
    if (files->parent >= 0)
        close(files->parent);
    files->fd = files->parent = -1;
}

void rec_code_files_abort(struct rec_code_files *files)
{
    const char *name = files->folder + files->name;

    if (files->fd >= 0) {
        st_folder_empty(files->fd);
        if (st_folder_has(files->parent, name, files->fd))
            unlinkat(files->parent, name, AT_REMOVEDIR);
        close(files->fd);
        files->fd = -1;
    }
    rec_code_files_free(files);
}
