/* decode_bad cut|pages|memory|calls SNAPSHOT: decodes the snapshot again and again in this process, each time
 * cut off at another length (pages: multiples of 4 KiB only), or with another allocation or system call that
 * fails, the libraries' own included. Whatever happens, there is a database that is whole, or an error that
 * says something and nothing is left; no memory and no descriptor stays behind. Works in the current folder.
 */
#include "decoder/cmd/decode_job.h"
#include "decoder/cmd/worker.h"

#include "base/log.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Allocations below are the ones of the whole process: the libraries call them too. A sanitizer has its own;
 * there the linker leads our code's calls here (--wrap). */
#ifdef ST_WRAP_ALLOCATIONS
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
#else
#define OURS(name) name
#define REAL(name) __libc_##name
#endif

static struct {
    bool counting, memory; /* which calls are counted: allocations, or system calls */

    unsigned long failing;

    _Atomic unsigned long calls; /* of all threads, as is what follows */

    atomic_bool failed;

    atomic_long live; /* allocations that were not freed */
} fault;

static bool fails(bool memory)
{
    if (!fault.counting || fault.memory != memory || ++fault.calls != fault.failing)
        return false;
    fault.failed = true;
    errno = memory ? ENOMEM : EIO;
    return true;
}

void *REAL(malloc)(size_t n);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *old, size_t n);
void REAL(free)(void *memory);
void *OURS(malloc)(size_t n);
void *OURS(calloc)(size_t n, size_t size);
void *OURS(realloc)(void *old, size_t n);
void OURS(free)(void *memory);

static void *born(void *memory)
{
    fault.live += memory != NULL;
    return memory;
}

void *OURS(malloc)(size_t n)
{
    return fails(true) ? NULL : born(REAL(malloc)(n));
}

void *OURS(calloc)(size_t n, size_t size)
{
    return fails(true) ? NULL : born(REAL(calloc)(n, size));
}

void *OURS(realloc)(void *old, size_t n)
{
    void *memory = fails(true) ? NULL : REAL(realloc)(old, n);

    fault.live += memory && !old;
    return memory;
}

void OURS(free)(void *memory)
{
    fault.live -= memory != NULL;
    REAL(free)(memory);
}

/* NAME as the C library has it. */
#define NEXT(name)                                                                                           \
    static __typeof__(name) *next;                                                                           \
    if (!next)                                                                                               \
    next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define SYSTEM_CALL(name, parameters, arguments)                                                             \
    int name parameters                                                                                      \
    {                                                                                                        \
        NEXT(name);                                                                                          \
        return fails(false) ? -1 : next arguments;                                                           \
    }

#define TRANSFER(name, parameters, arguments)                                                                \
    ssize_t name parameters                                                                                  \
    {                                                                                                        \
        NEXT(name);                                                                                          \
        return fails(false) ? -1 : next arguments;                                                           \
    }

SYSTEM_CALL(fsync, (int fd), (fd))
SYSTEM_CALL(fdatasync, (int fd), (fd))
SYSTEM_CALL(ftruncate64, (int fd, off_t size), (fd, size))
SYSTEM_CALL(link, (const char *from, const char *to), (from, to))
SYSTEM_CALL(rename, (const char *from, const char *to), (from, to))
SYSTEM_CALL(renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
            (a, from, b, to, flags))
TRANSFER(read, (int fd, void *to, size_t n), (fd, to, n))
TRANSFER(write, (int fd, const void *from, size_t n), (fd, from, n))
TRANSFER(pread64, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
TRANSFER(pwrite64, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))

int open64(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;
    NEXT(open64);

    va_start(args, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails(false) ? -1 : next(path, flags, mode);
}

void *mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap64);

    return fails(false) ? MAP_FAILED : next(at, n, protection, flags, fd, offset);
}

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static bool is_whole(const char *path)
{
    sqlite3_stmt *s = NULL;
    sqlite3 *db = NULL;
    bool whole = !sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) &&
                 !sqlite3_prepare_v2(
                     db, "SELECT (SELECT * FROM pragma_quick_check) = 'ok' AND count(*) > 10 FROM meta", -1,
                     &s, NULL) &&
                 sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 1;

    sqlite3_finalize(s);
    sqlite3_close(db);
    return whole;
}

static bool complain(const char *what, unsigned long n, const char *problem, const struct st_error *err)
{
    if (what)
        fprintf(stderr, "%s %lu: %s (%s)\n", what, n, problem, err->text);
    return false;
}

/* ---- decode's other process (decoder/cmd/serve.c), in this one: it makes the files, and gives the database
 * its name ---- */

static int database = -1;

void dec_ask_begin(void)
{
}

int dec_ask(enum dec_request_kind what)
{
    int fd = open64(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 && what == DEC_ASK_OUT)
        database = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return fd;
}

void dec_tell(const char *line)
{
    (void)line;
}

static void name_database(const char *name)
{
    char path[64];

    if (database < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", database);
    if (name && linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW))
        perror(name);
    close(database);
    database = -1;
}

/* Decodes `input`; whether all is as it should be. *rc is what it returned. */
static bool decode(const char *input, const char *what, unsigned long n, int *rc)
{
    const struct decode_options options = {.input = input, .output = "bad.db"};
    const size_t files = entries("."), descriptors = entries("/proc/self/fd");
    const long live = fault.live;
    struct st_error err = {0};
    long left;

    fault.calls = 0;
    fault.failed = false;
    fault.counting = true;
    *rc = decode_run(&options, &err);
    fault.counting = false;
    name_database(*rc ? NULL : "bad.db");
    left = fault.live - live;
    if (!*rc && !is_whole("bad.db"))
        return complain(what, n, "a database that is not whole", &err);
    if (!*rc)
        unlink("bad.db");
    if (entries(".") != files)
        return complain(what, n, "a file is left", &err);
    if (entries("/proc/self/fd") != descriptors)
        return complain(what, n, "a descriptor is left open", &err);
    if (*rc && !err.text[0])
        return complain(what, n, "an error without words", &err);
    return left <= 0 || complain(what, n, "memory is left", &err);
}

/* Every `step`th length from the last but one on down. */
static unsigned long cut(const char *snapshot, off_t step, unsigned long *runs)
{
    unsigned long bad = 0;
    struct stat st;
    int rc;

    if (stat(snapshot, &st))
        return 1;
    for (off_t length = (st.st_size - 1) / step * step; length >= 0 && bad < 10; length -= step, ++*runs) {
        if (truncate(snapshot, length))
            return 1;
        if (!decode(snapshot, "cut off at", (unsigned long)length, &rc) || !rc) {
            fprintf(stderr, "cut off at %lld of %lld bytes: status %d\n", (long long)length,
                    (long long)st.st_size, rc);
            bad++;
        }
    }
    return bad;
}

/* The first calls one by one, later ones here and there. */
static unsigned long failing(const char *snapshot, bool memory, unsigned long *runs)
{
    unsigned long bad = 0, failures = 0;
    int rc;

    fault.memory = memory;
    fault.failing = 0;
    (void)decode(snapshot, NULL, 0, &rc); /* what libraries keep for good is there now */
    if (!decode(snapshot, "nothing fails", 0, &rc) || rc)
        return 1;
    for (unsigned long n = 1; bad < 10; n += 1 + n / 50, ++*runs) {
        fault.failing = n;
        bad += !decode(snapshot, memory ? "allocation" : "system call", n, &rc);
        if (!fault.failed)
            break;
        failures += rc != 0;
    }
    if (*runs < 40 || failures < *runs / 4) {
        fprintf(stderr, "only %lu of %lu decodings failed\n", failures, *runs);
        bad++;
    }
    return bad;
}

int main(int argc, char **argv)
{
    unsigned long bad, runs = 0;

    if (argc != 3 || !freopen("/dev/null", "w", stdout)) /* "wrote ..." */
        return 2;
    if (!strcmp(argv[1], "cut") || !strcmp(argv[1], "pages"))
        bad = cut(argv[2], argv[1][0] == 'p' ? 4096 : 1, &runs);
    else
        bad = failing(argv[2], !strcmp(argv[1], "memory"), &runs);
    fprintf(stderr, "%lu decodings, %lu wrong\n", runs, bad);
    return bad != 0;
}
