/* The numbers of snapshots. */
#include "perfdata/writer.h"
#include "recorder/code/files.h"
#include "recorder/snapshot/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void numbers_go_on(void **state)
{
    static const char *const names[] = {"p.3.data",   "p.12.db",    "p.13.txt",   "p.14.data.old", "p..data",
                                        "pp.99.data", "p.x99.data", ".p.77.data", "p.-5.data"};
    char folder[] = "/tmp/stalltrap-unit.XXXXXX", prefix[128], path[256];
    unsigned n = 0;
    int at;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(prefix, sizeof(prefix), "%s/p", folder);
    at = rec_snapshot_folder(prefix, NULL);
    assert_true(at >= 0);
    assert_int_equal(rec_snapshot_next(at, prefix, &n, NULL), 0);
    assert_int_equal(n, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        touch(folder, names[i]);
    assert_int_equal(rec_snapshot_next(at, prefix, &n, NULL), 0);
    assert_int_equal(n, 13);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    close(at);
    assert_int_equal(rec_snapshot_folder("/no/such/folder/p", NULL), ST_EFAIL);
}

/* ---- what a process that was killed had begun ---- */

/* A snapshot with a folder of code, in the middle of it: says so, and waits to be killed. */
static _Noreturn void begin(const char *prefix, int ready)
{
    struct rec_code_files code;
    struct pd_writer *w;
    char path[128];
    int kcore;

    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        _exit(1);
    snprintf(path, sizeof(path), "%s.1.data", prefix);
    if (pd_writer_open(path, true, &w, NULL) || (kcore = pd_writer_kcore_dir(w, NULL)) < 0)
        _exit(1);
    close(openat(kcore, "kcore", O_CREAT | O_WRONLY, 0600));
    if (rec_code_files_open(&code, path, NULL) || rec_code_files_add(&code, getpid(), NULL) || code.fd < 0)
        _exit(1);
    if (write(ready, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* Its number, when it is in the middle. */
static pid_t begin_snapshot(const char *prefix)
{
    int ends[2];
    char byte;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        begin(prefix, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

/* What is left there is swept as a recording begins. */
static void begin_another(const char *prefix)
{
    int folder = rec_snapshot_folder(prefix, NULL);

    assert_true(folder >= 0);
    close(folder);
}

static size_t entries(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void what_sigkill_left_goes_with_the_next(void **state)
{
    char folder[] = "/tmp/stalltrap-unit.XXXXXX", prefix[128];
    pid_t child;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(prefix, sizeof(prefix), "%s/p", folder);
    child = begin_snapshot(prefix);
    assert_int_equal(entries(folder), 2);
    begin_another(prefix);
    assert_int_equal(entries(folder), 2); /* while it is written it stays */
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(prefix, sizeof(prefix), "%s/q", folder);
    begin_another(prefix);
    assert_int_equal(entries(folder), 2); /* of another prefix */
    snprintf(prefix, sizeof(prefix), "%s/p", folder);
    begin_another(prefix);
    assert_int_equal(entries(folder), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A folder FOLDER/NAME of this mode, with a file in it. */
static void make(const char *folder, const char *name, mode_t mode)
{
    char path[256], file[64];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(mkdir(path, mode), 0);
    snprintf(file, sizeof(file), "%s/file", name);
    touch(folder, file);
}

static void remove_made(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s/file", folder, name);
    assert_int_equal(unlink(path), 0); /* it is still there */
    *strrchr(path, '/') = '\0';
    assert_int_equal(unlink(path) && rmdir(path), 0);
}

static void what_is_no_such_folder_stays(void **state)
{
    static const struct {
        const char *name;

        mode_t mode;
    } kept[] = {
        {"p.2.code", 0700},  /* finished: its snapshot may have been moved */
        {"p.3.code", 01700}, /* its snapshot is there */
        {"p.x.code", 01700},      {"p.4.codes", 01700}, {"pp.4.code", 01700}, {".p.5.database.abcdef", 0700},
        {".p.data.abcdef", 0700}, {".p.6.data", 0700},  {"elsewhere", 0700},
    };
    char folder[] = "/tmp/stalltrap-unit.XXXXXX", prefix[128], path[256];
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(prefix, sizeof(prefix), "%s/p", folder);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        make(folder, kept[i].name, kept[i].mode);
    touch(folder, "p.3.data");
    snprintf(path, sizeof(path), "%s/.p.7.data.abcdef", folder);
    assert_int_equal(symlink("elsewhere", path), 0);
    make(folder, "p.8.code", 01700);
    snprintf(path, sizeof(path), "%s/p.8.code/link", folder);
    assert_int_equal(symlink("../elsewhere", path), 0);
    begin_another(prefix);
    *strrchr(path, '/') = '\0';
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof(path), "%s/p.3.code", folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700); /* so that it stays when its snapshot is moved */
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        remove_made(folder, kept[i].name);
    snprintf(path, sizeof(path), "%s/p.3.data", folder);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/.p.7.data.abcdef", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_go_on),
        cmocka_unit_test(what_sigkill_left_goes_with_the_next),
        cmocka_unit_test(what_is_no_such_folder_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
