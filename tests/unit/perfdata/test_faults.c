/* Each allocation and each system call of writing and reading fails once: an error comes back, nothing leaks,
 * nothing is left. */
#include "hand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The linker leads every call of the functions below here (option --wrap, see extra.cmake). The calls are
 * counted; the one whose number is `failing` fails. What was allocated is kept in a list until it is freed.
 */
static struct {
    bool counting;

    unsigned long calls, failing;

    int error; /* errno of a failing call that is no allocation */

    void *live[4096];

    size_t nlive;

    bool failed;
} fault;

static bool fails(void)
{
    if (!fault.counting || ++fault.calls != fault.failing)
        return false;
    fault.failed = true;
    return true;
}

static void *born(void *memory)
{
    if (fault.counting && memory) {
        if (fault.nlive == sizeof(fault.live) / sizeof(fault.live[0]))
            abort();
        fault.live[fault.nlive++] = memory;
    }
    return memory;
}

static void dead(void *memory)
{
    for (size_t i = 0; i < fault.nlive; i++)
        if (fault.live[i] == memory) {
            fault.live[i] = fault.live[--fault.nlive];
            return;
        }
}

#define ALLOCATION(call)                                                                                     \
    do {                                                                                                     \
        if (fails()) {                                                                                       \
            errno = ENOMEM;                                                                                  \
            return NULL;                                                                                     \
        }                                                                                                    \
        return born(call);                                                                                   \
    } while (0)

#define SYSTEM_CALL(failure, call)                                                                           \
    do {                                                                                                     \
        if (fails()) {                                                                                       \
            errno = fault.error;                                                                             \
            return failure;                                                                                  \
        }                                                                                                    \
        return call;                                                                                         \
    } while (0)

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    ALLOCATION(__real_malloc(n));
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    ALLOCATION(__real_calloc(n, size));
}

void *__real_realloc(void *old, size_t n);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_realloc(void *old, size_t n)
{
    if (fails())
        return NULL;
    dead(old);
    return born(__real_realloc(old, n));
}

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
    if (fails())
        return NULL;
    dead(old);
    return born(__real_reallocarray(old, n, size));
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    ALLOCATION(__real_strdup(text));
}

char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n)
{
    ALLOCATION(__real_strndup(text, n));
}

int __wrap_asprintf(char **text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **text, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (fails())
        return -1;
    va_start(ap, fmt);
    n = vasprintf(text, fmt, ap);
    va_end(ap);
    if (n >= 0)
        born(*text);
    return n;
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    dead(memory);
    __real_free(memory);
}

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    SYSTEM_CALL(-1, __real_write(fd, data, n));
}

ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    SYSTEM_CALL(-1, __real_pwrite64(fd, data, n, at));
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    SYSTEM_CALL(-1, __real_fsync(fd));
}

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to)
{
    SYSTEM_CALL(-1, __real_link(from, to));
}

int __real_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags);
int __wrap_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags);
int __wrap_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags)
{
    SYSTEM_CALL(-1, __real_renameat2(fd, from, fd2, to, flags));
}

char *__real_mkdtemp(char *path);
char *__wrap_mkdtemp(char *path);
char *__wrap_mkdtemp(char *path)
{
    SYSTEM_CALL(NULL, __real_mkdtemp(path));
}

int __real_mkostemp64(char *path, int flags);
int __wrap_mkostemp64(char *path, int flags);
int __wrap_mkostemp64(char *path, int flags)
{
    SYSTEM_CALL(-1, __real_mkostemp64(path, flags));
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    SYSTEM_CALL(-1, __real_mkdir(path, mode));
}

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    SYSTEM_CALL(-1, __real_open64(path, flags, mode));
}

void *__real_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    SYSTEM_CALL(MAP_FAILED, __real_mmap64(at, n, protection, flags, fd, offset));
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    SYSTEM_CALL(NULL, __real_opendir(path));
}

int __real_scandir64(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_scandir64(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_scandir64(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compare)(const struct dirent **, const struct dirent **))
{
    SYSTEM_CALL(-1, __real_scandir64(path, list, filter, compare));
}

static size_t open_files(void)
{
    return scratch_entries("/proc/self/fd");
}

/* Lets call number `failing` of what `job` does fail. Returns job's code; *done when there were not so many
 * calls. */
static int run(int (*job)(void **state, struct st_error *err), void **state, unsigned long failing, int error,
               bool *done, struct st_error *err)
{
    const size_t files = open_files();
    int rc;

    memset(err, 0, sizeof(*err));
    memset(&fault, 0, sizeof(fault));
    fault.failing = failing;
    fault.error = error;
    fault.counting = true;
    rc = job(state, err);
    fault.counting = false;
    *done = !fault.failed;
    if (fault.nlive)
        fail_msg("call %lu failed: %zu allocations leak", failing, fault.nlive);
    assert_int_equal(open_files(), files);
    if (rc && !err->text[0])
        fail_msg("call %lu failed: no words for it", failing);
    return rc;
}

static int write_file(void **state, struct st_error *err)
{
    return recording_write(scratch_path(state, "a.data"), false, err);
}

static int write_folder(void **state, struct st_error *err)
{
    return recording_write(scratch_path(state, "d.data"), true, err);
}

/* A failure that does not matter (what is known of the machine) may end well: then the file must be a good
 * one. */
static void writing_fails_anywhere(void **state, int (*job)(void **, struct st_error *), const char *name,
                                   int error)
{
    unsigned long failures = 0;
    bool done = false;

    for (unsigned long n = 1; !done; n++) {
        struct st_error err;
        struct walked w;
        int rc = run(job, state, n, error, &done, &err);

        if (rc) {
            failures++;
            assert_true(rc == ST_ENOMEM || rc == ST_EFAIL);
            if (scratch_entries(*state))
                fail_msg("call %lu failed (%s): something is left", n, err.text);
            continue;
        }
        assert_int_equal(scratch_entries(*state), 1);
        walk_path(scratch_path(state, name), &w);
        assert_int_equal(w.rc, 0);
        assert_int_equal(w.records.n, NRECORDS);
        walked_free(&w);
        scratch_teardown(state);
        scratch_setup(state);
    }
    assert_in_range(failures, 30, 1000);
}

static void writing_a_file_fails_anywhere(void **state)
{
    writing_fails_anywhere(state, write_file, "a.data", ENOSPC);
}

static void writing_a_folder_fails_anywhere(void **state)
{
    writing_fails_anywhere(state, write_folder, "d.data", EIO);
}

static int one_record(void *ctx, const struct pd_record *record, struct st_error *err)
{
    struct pd_sample s;

    (void)ctx;
    return record->header->type == PERF_RECORD_SAMPLE ? pd_record_sample(record, &s, err) : 0;
}

static int read_recording(void **state, const char *name, struct st_error *err)
{
    struct pd_reader *reader = NULL;
    int rc = pd_reader_open(scratch_path(state, name), &reader, err);

    if (rc) {
        assert_null(reader);
        return rc;
    }
    rc = pd_reader_each(reader, one_record, NULL, err);
    /* A second walk, as after any first one, must be possible. */
    if (rc == ST_ENOMEM)
        (void)pd_reader_each(reader, one_record, NULL, NULL);
    pd_reader_close(reader);
    return rc;
}

static int read_file_form(void **state, struct st_error *err)
{
    return read_recording(state, "a.data", err);
}

static int read_folder_form(void **state, struct st_error *err)
{
    return read_recording(state, "d.data", err);
}

static int read_compressed(void **state, struct st_error *err)
{
    return read_recording(state, "z.data", err);
}

/* Compressed records of odd sizes, each followed by a plain one: which must be copied. */
static void make_compressed(void **state)
{
    const uint64_t type = SAMPLE_TYPE;
    ZSTD_CStream *stream = ZSTD_createCStream();
    struct file f = {0}, inside = {0};
    struct made m;

    for (uint64_t i = 0; i < 8; i++) {
        made_mmap2(&m, i, "/bin/a", i, 10);
        file_add(&inside, &m, m.header.size);
    }
    hand_file(&f, &type, 1, true, sizeof(struct perf_event_attr));
    for (size_t at = 0; at < inside.bytes.n; at += 50) {
        size_t left = inside.bytes.n - at;

        hand_compressed(&f, stream, PD_RECORD_COMPRESSED, inside.bytes.at + at, left < 50 ? left : 50);
        made_mmap2(&m, at, "/bin/b", at, 10);
        file_add(&f, &m, m.header.size);
    }
    hand_end(&f);
    file_write(scratch_path(state, "z.data"), f.bytes.at, f.bytes.n);
    st_vec_free(&f.bytes);
    st_vec_free(&inside.bytes);
    ZSTD_freeCStream(stream);
}

static void reading_fails_anywhere(void **state, int (*job)(void **, struct st_error *), unsigned long least)
{
    unsigned long failures = 0;
    bool done = false;

    for (unsigned long n = 1; !done; n++) {
        struct st_error err;
        int rc = run(job, state, n, EIO, &done, &err);

        if (rc && (done || (rc != ST_ENOMEM && rc != ST_EFAIL)))
            fail_msg("call %lu failed: %s", n, err.text);
        failures += rc != 0;
    }
    assert_in_range(failures, least, 1000);
}

static void reading_fails_at_any_call(void **state)
{
    struct st_error err = {0};

    assert_int_equal(write_file(state, &err), 0);
    assert_int_equal(write_folder(state, &err), 0);
    make_compressed(state);
    reading_fails_anywhere(state, read_file_form, 10);
    reading_fails_anywhere(state, read_folder_form, 14);
    reading_fails_anywhere(state, read_compressed, 14);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writing_a_file_fails_anywhere),
        TEST(writing_a_folder_fails_anywhere),
        TEST(reading_fails_at_any_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
