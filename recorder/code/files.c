/* Code that nobody finds by its mapping's name. */
#include "recorder/code/files.h"
#include "base/bisect.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/tempfiles.h"
#include "recorder/code/elf.h"
#include "recorder/code/names.h"
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

enum {
    NAMES_MS = 4000,        /* for the names of all processes: the recording waits meanwhile */
    COPY_MS = 4000,         /* for copying, beside that */
    SLOTS = 8192,           /* a power of two, and twice as many as there are copies */
    AT_ONCE = 16 << 20,     /* bytes, between two looks at the clock */
    SYNCED_ONE_BY_ONE = 64, /* copies; of more, the file system is brought to disk once */
};

_Static_assert(SLOTS >= 2 * REC_CODE_MOST_COPIES, "a slot is free");

/* Returned by what copies. */
enum { LEFT_OUT = 1 };

struct adder {
    struct rec_code_files *files;

    pid_t pid;

    int memory; /* /proc/PID/mem, or -1 */

    bool failed, named;

    unsigned left_out; /* mappings */

    const char *why; /* the first of them was */

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

    *files = (struct rec_code_files){.left = most_bytes,
                                     .more = REC_CODE_MOST_COPIES,
                                     .until = st_mono_ns() + (uint64_t)COPY_MS * 1000000,
                                     .patience = NAMES_MS,
                                     .parent = -1,
                                     .fd = -1};
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
    files->fd = st_folder_make_unfinished(files->parent, files->folder + files->name);
    while (files->fd >= 0 && st_tempfile_lock(files->fd)) {
        close(files->fd);
        files->fd = st_folder_make_unfinished(files->parent, files->folder + files->name);
    }
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

/* The last part of the mapping's name as a file name: "libfoo.so", "jit-4312-7f0000001000.so". */
static void name_copy(const struct adder *a, const struct rec_map *map, char base[128])
{
    const char *slash = strrchr(map->name, '/');
    char name[112];

    snprintf(name, sizeof(name), "%.100s", slash ? slash + 1 : map->name);
    name[name_length(name)] = '\0';
    if (map->ino)
        snprintf(base, 128, "%s%s", name[0] == '.' || !name[0] ? "_" : "", name);
    else
        snprintf(base, 128, "jit-%d-%" PRIx64 ".so", a->pid, map->start);
}

static bool is_numbered(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return digits && name[digits] == '-';
}

/* A new file in the folder, whose name is put in `file`: where another copy has the name, or the mapping's
 * looks like that, "N-NAME" with the number of the copy, which no other has. */
static int create(const struct adder *a, const struct rec_map *map, char file[NAME_MAX + 1],
                  struct st_error *err)
{
    char base[128];
    int fd = -1;

    name_copy(a, map, base);
    errno = EEXIST;
    if (!is_numbered(base))
        fd = st_folder_create(a->files->fd, base);
    if (fd >= 0 || errno != EEXIST) {
        snprintf(file, NAME_MAX + 1, "%s", base);
    } else {
        snprintf(file, NAME_MAX + 1, "%zu-%s", a->files->copies.n + 1, base);
        fd = st_folder_create(a->files->fd, file);
    }
    return fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot create '%s/%s'", a->files->folder, file) : fd;
}

/* 0, LEFT_OUT or an error. */
static int copy_file(const struct adder *a, int from, int to, uint64_t size, struct st_error *err)
{
    while (size) {
        ssize_t n = sendfile(to, from, NULL, size < AT_ONCE ? size : AT_ONCE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return st_fail_errno(err, ST_EFAIL, "cannot write a copy of code to '%s'", a->files->folder);
        if (n == 0)
            break;
        size -= (uint64_t)n;
        if (size && st_mono_ns() >= a->files->until)
            return LEFT_OUT;
    }
    return 0;
}

/* Remembers that `path`, one of the copies', holds the code of the mapping. */
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
        .path = path,
    };

    if (f.name && !st_vec_push(&a->files->files, f))
        return 0;
    free(f.name);
    return st_nomem(err, "the list of copied code");
}

/* ---- the copies, by the file that they are of ---- */

/* The slot of the file's copy, or the free one where it would be. */
static uint32_t *slot_of(const struct rec_code_files *files, const struct rec_map *map)
{
    uint64_t key = (map->ino ^ (uint64_t)map->maj << 52 ^ (uint64_t)map->min << 32) * 0x9e3779b97f4a7c15ull;

    for (size_t i = (size_t)(key >> 32) % SLOTS;; i = (i + 1) % SLOTS) {
        uint32_t *slot = &files->slots[i];
        const struct rec_code_copy *c = *slot ? &files->copies.at[*slot - 1] : NULL;

        if (!c || (c->ino == map->ino && c->maj == map->maj && c->min == map->min))
            return slot;
    }
}

static const char *copied_before(const struct rec_code_files *files, const struct rec_map *map)
{
    uint32_t slot = files->slots && map->ino ? *slot_of(files, map) : 0;

    return slot ? files->copies.at[slot - 1].path : NULL;
}

/* The copy, with its path; NULL: no memory. */
static const char *keep_copy(struct rec_code_files *files, const struct rec_map *map, const char *file,
                             bool whole)
{
    struct rec_code_copy c = {0};

    if (!files->slots)
        files->slots = calloc(SLOTS, sizeof(*files->slots));
    if (!files->slots || asprintf(&c.path, "%s/%s", files->folder, file) < 0)
        return NULL;
    if (whole)
        c = (struct rec_code_copy){map->maj, map->min, map->ino, c.path};
    if (st_vec_push(&files->copies, c)) {
        free(c.path);
        return NULL;
    }
    if (whole)
        *slot_of(files, map) = (uint32_t)files->copies.n;
    files->more--;
    return c.path;
}

/* ---- copying ---- */

/* Once a process. */
static int read_names(struct adder *a, struct st_error *err)
{
    struct rec_code_missing u = {.pid = a->pid};
    unsigned took;

    if (a->named)
        return 0;
    a->named = true;
    took = rec_code_names_read(a->pid, a->files->patience, &a->names, u.why, sizeof(u.why));
    a->files->patience -= took;
    a->files->until += (uint64_t)took * 1000000;
    return *u.why && st_vec_push(&a->files->unnamed, u) ? st_nomem(err, "names of code") : 0;
}

static int leave_out(struct adder *a, const char *why)
{
    a->left_out++;
    if (!a->why)
        a->why = why;
    return LEFT_OUT;
}

static const char no_time[] = "copying takes longer than 4 s";

/* Whether another file may be copied: 0 or LEFT_OUT. */
static int check_room(struct adder *a)
{
    if (!a->files->more)
        return leave_out(a, "there are more than 4096 files of it");
    return st_mono_ns() >= a->files->until ? leave_out(a, no_time) : 0;
}

static int fill(struct adder *a, const struct rec_map *map, int from, int fd, uint64_t size,
                struct st_error *err)
{
    int rc = from >= 0 ? copy_file(a, from, fd, size, err)
                       : rec_code_elf_write(fd, a->memory, map->start, map->end, &a->names, err);

    if (rc == LEFT_OUT)
        return leave_out(a, no_time);
    if (a->files->copies.n >= SYNCED_ONE_BY_ONE)
        a->files->unsynced = true;
    else if (!rc && fsync(fd))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write a copy of code in '%s' to disk", a->files->folder);
    if (!rc)
        st_folder_give(a->files->parent, fd);
    return rc;
}

/* A copy, by `write` to a new file; a mapping that is larger than what may still be copied is left out. */
static int copy_new(struct adder *a, const struct rec_map *map, int from, uint64_t size, struct st_error *err)
{
    char file[NAME_MAX + 1];
    const char *path;
    int fd, rc;

    if (size > a->files->left)
        return leave_out(a, "there is more than 512 MiB of it");
    a->files->left -= size;
    rc = from < 0 ? read_names(a, err) : 0;
    if (!rc)
        rc = make_folder(a->files, err);
    if (rc)
        return rc;
    fd = create(a, map, file, err);
    if (fd < 0)
        return fd;
    rc = fill(a, map, from, fd, size, err);
    close(fd);
    if (rc == LEFT_OUT)
        unlinkat(a->files->fd, file, 0);
    if (rc)
        return rc;
    path = keep_copy(a->files, map, file, from >= 0);
    return path ? note(a, map, path, from >= 0, err) : st_nomem(err, "the list of copied code");
}

/* Code that no copy holds yet. */
static int copy_other(struct adder *a, const struct rec_map *map, struct st_error *err)
{
    int from, rc = check_room(a);
    struct stat st;

    if (rc)
        return rc;
    from = rec_map_open(a->pid, map);
    if (from >= 0 && !fstat(from, &st) && S_ISREG(st.st_mode))
        rc = copy_new(a, map, from, (uint64_t)st.st_size, err);
    else
        rc = a->memory < 0 ? 0 : copy_new(a, map, -1, map->end - map->start, err);
    if (from >= 0)
        close(from);
    return rc;
}

static int copy_map(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct adder *a = ctx;
    const char *before;
    int rc;

    /* The snapshot holds the first, nobody runs the second, and the third the kernel gives nobody to read. */
    if (!strcmp(map->name, "[vdso]") || !strcmp(map->name, "[vsyscall]") || !strcmp(map->name, "[uprobes]") ||
        rec_map_findable(map))
        return 0;
    before = copied_before(a->files, map);
    rc = before ? note(a, map, before, true, err) : copy_other(a, map, err);
    if (rc == LEFT_OUT)
        rc = 0;
    a->failed = rc != 0;
    return rc;
}

static int compare(const struct rec_code_file *f, pid_t pid, uint64_t start)
{
    if (f->pid != pid)
        return f->pid < pid ? -1 : 1;
    return f->start < start ? -1 : f->start > start;
}

static int by_place(const void *a, const void *b)
{
    const struct rec_code_file *y = b;

    return compare(a, y->pid, y->start);
}

/* Those from `first` on are new. They come in order where the processes do. */
static void sort(struct rec_code_files *files, size_t first)
{
    for (size_t i = first ? first : 1; i < files->files.n; i++) {
        if (by_place(&files->files.at[i - 1], &files->files.at[i]) <= 0)
            continue;
        qsort(files->files.at, files->files.n, sizeof(files->files.at[0]), by_place);
        return;
    }
}

/* That there is more than was copied. */
static int tell(const struct adder *a, struct st_error *err)
{
    struct rec_code_missing m = {.pid = a->pid};

    if (!a->left_out)
        return 0;
    snprintf(m.why, sizeof(m.why), "the code of %u mapping%s was not copied: %s", a->left_out,
             a->left_out == 1 ? "" : "s", a->why);
    return st_vec_push(&a->files->left_out, m) ? st_nomem(err, "what was left out") : 0;
}

int rec_code_files_add(struct rec_code_files *files, pid_t pid, struct st_error *err)
{
    struct adder a = {.files = files, .pid = pid, .memory = trg_memory_open(pid)};
    size_t before = files->files.n;
    int rc = rec_proc_maps(pid, copy_map, &a, err);

    rec_perf_map_free(&a.names);
    if (a.memory >= 0)
        close(a.memory);
    if (a.failed)
        return rc; /* that its mappings cannot be read any more is no failure */
    sort(files, before);
    return tell(&a, err);
}

int rec_code_files_sync(struct rec_code_files *files, struct st_error *err)
{
    if (!files->unsynced)
        return 0;
    files->unsynced = false;
    return syncfs(files->fd) ? st_fail_errno(err, ST_EFAIL, "cannot write '%s' to disk", files->folder) : 0;
}

const struct rec_code_file *rec_code_files_find(const struct rec_code_files *files,
                                                const struct rec_mmap2_record *map)
{
    size_t len = name_length(map->filename);
    size_t behind =
        st_bisect(i, files->files.n, compare(&files->files.at[i], (pid_t)map->pid, map->addr) <= 0);
    const struct rec_code_file *f = behind ? &files->files.at[behind - 1] : NULL;

    return f && f->pid == (pid_t)map->pid && map->addr < f->end && strlen(f->name) == len &&
                   !memcmp(f->name, map->filename, len)
               ? f
               : NULL;
}

void rec_code_files_free(struct rec_code_files *files)
{
    for (size_t i = 0; i < files->files.n; i++)
        free(files->files.at[i].name);
    for (size_t i = 0; i < files->copies.n; i++)
        free(files->copies.at[i].path);
    free(files->slots);
    files->slots = NULL;
    st_vec_free(&files->files);
    st_vec_free(&files->copies);
    st_vec_free(&files->unnamed);
    st_vec_free(&files->left_out);
    if (files->fd >= 0) {
        st_folder_finish(files->fd);
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
