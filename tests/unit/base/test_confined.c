/* The child that works without privilege: what comes back when its work crashes, hangs, lies or says too
 * much, that it does no work where it could not give up what it has, and that nothing of it is left. */
#include "base/confined.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG = 200000 /* ms: longer than a machine stops for */, MOST = 1 << 20 };

static bool refuse;

/* Of both processes: the work was begun. */
static int *worked;

int __real_setgroups(size_t n, const gid_t *list);
int __wrap_setgroups(size_t n, const gid_t *list);

int __wrap_setgroups(size_t n, const gid_t *list)
{
    if (!refuse)
        return __real_setgroups(n, list);
    errno = EPERM;
    return -1;
}

/* ---- what the child does, by the name in the question ---- */

static void crash(void)
{
    static volatile uintptr_t nowhere = 8;

    *(volatile int *)nowhere = 1;
}

static void hang(void)
{
    for (volatile int i = 0;; i++)
        ;
}

/* One that was taken over writes what it likes to the only descriptor that it has. */
static void lie(void)
{
    for (int fd = 0; fd < 256; fd++) {
        char bytes[4096];

        memset(bytes, 0xff, sizeof(bytes));
        while (send(fd, bytes, sizeof(bytes), 0) > 0 || write(fd, bytes, sizeof(bytes)) > 0)
            ;
    }
}

static void attack(const char *name)
{
    (*worked)++;
    if (!strcmp(name, "crash"))
        crash();
    if (!strcmp(name, "hang"))
        hang();
    if (!strcmp(name, "lie"))
        lie();
    if (!strcmp(name, "exit"))
        _exit(7);
    if (!strcmp(name, "open"))
        open("/etc/passwd", O_RDONLY);
    if (!strcmp(name, "socket"))
        syscall(SYS_socket, 1, 1, 0);
    if (!strcmp(name, "owner"))
        fcntl(0, F_SETOWN, 1);
    if (!strcmp(name, "fork"))
        syscall(SYS_fork);
    if (!strcmp(name, "kill"))
        syscall(SYS_kill, getppid(), 0);
    if (!strcmp(name, "exec"))
        execl("/bin/true", "true", NULL);
    if (!strcmp(name, "code"))
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static ssize_t answer(int fd, const void *question, size_t size, void *to, size_t room)
{
    const char *name = question;

    if (!size || name[size - 1])
        _exit(8);
    attack(name);
    if (!strcmp(name, "bad")) {
        errno = EBADMSG;
        return -1;
    }
    if (!strcmp(name, "memory")) {
        void *much = malloc((size_t)4 << 30);

        free(much);
        errno = ENOMEM;
        return much ? 0 : -1;
    }
    if (!strcmp(name, "oversized"))
        return (ssize_t)room + 1;
    if (!strcmp(name, "read"))
        return pread(fd, to, room, 0);
    memset(to, 'x', room);
    return (ssize_t)room;
}

static int work(void *ctx, int out)
{
    static const char bytes[MOST];

    attack(ctx);
    if (!strcmp(ctx, "oversized"))
        return st_confined_write(out, bytes, MOST) || st_confined_write(out, "x", 1);
    if (!strcmp(ctx, "bad"))
        return -1;
    return st_confined_write(out, bytes, MOST);
}

static int nothing_to_do(void *ctx, int keep[ST_CONFINED_KEPT])
{
    (void)ctx;
    (void)keep;
    return 1;
}

/* ---- what the parent sees ---- */

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void assert_no_child(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in \"%s\"", part, text);
}

static ssize_t ask(struct st_confined *c, const char *name, int fd, char *to, size_t room,
                   struct st_error *err)
{
    const struct st_confined_question q = {"read the functions of '/bin/x'", answer, fd, name,
                                           strlen(name) + 1};

    *err = (struct st_error){0};
    return st_confined_ask(c, &q, to, room, err);
}

static int run(const char *name, unsigned patience, struct st_confined_end *end, size_t *n)
{
    const struct st_confined_work w = {.work = work, .ctx = (void *)name, .patience = patience, .most = MOST};
    void *got;
    int rc = st_confined_run(&w, &got, n, end);

    assert_true(rc == 0 || !got);
    free(got);
    assert_no_child();
    return rc;
}

struct failure {
    const char *name;

    unsigned patience;

    enum st_confined_how how;

    const char *text;
};

static void test_answers(void **state)
{
    struct st_confined c = {.patience = LONG};
    static char to[MOST];
    struct st_error err;
    struct st_confined_end end;
    int fd = memfd_create("answers", 0), before = descriptors();
    size_t n;

    (void)state;
    assert_int_equal(write(fd, "hello", 5), 5);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ask(&c, "read", fd, to, sizeof(to), &err), 5);
        assert_memory_equal(to, "hello", 5);
        assert_int_equal(ask(&c, "all", -1, to, (size_t)i * 1000, &err), i * 1000);
    }
    assert_int_equal(ask(&c, "all", -1, to, sizeof(to), &err), sizeof(to));
    assert_int_equal(ask(&c, "bad", -1, to, sizeof(to), &err), ST_EBADFILE);
    assert_string_equal(err.text, "cannot read the functions of '/bin/x': Bad message");
    assert_int_equal(ask(&c, "read", fd, to, sizeof(to), &err), 5); /* the same child */
    assert_int_equal(c.failed, 0);
    st_confined_close(&c);
    st_confined_close(&c);
    assert_int_equal(descriptors(), before);
    close(fd);
    assert_int_equal(run("all", LONG, &end, &n), 0);
    assert_int_equal(n, MOST);
}

static void test_nothing_to_do(void **state)
{
    const struct st_confined_work w = {.prepare = nothing_to_do, .work = work, .ctx = "all", .most = 1};
    struct st_confined_end end;
    void *got = &end;
    size_t n = 1;

    (void)state;
    assert_int_equal(st_confined_run(&w, &got, &n, &end), 0);
    assert_null(got);
    assert_int_equal(n, 0);
    assert_int_equal(end.how, ST_CONFINED_DONE);
    assert_no_child();
}

static const struct failure failures[] = {
    {"crash", LONG, ST_CONFINED_KILLED, "was ended by signal 11 (Segmentation fault)"},
    {"hang", 50, ST_CONFINED_LATE, "was not done after 50 ms"},
    {"oversized", LONG, ST_CONFINED_UNSOUND, "answered is no answer"},
    {"exit", LONG, ST_CONFINED_EXITED, "gave up (exit status 7)"},
};

#ifndef ST_SANITIZED
static const struct failure forbidden[] = {
    {"open", LONG, ST_CONFINED_KILLED, "was ended by signal 31 (Bad system call)"},
    {"socket", LONG, ST_CONFINED_KILLED, "signal 31"},
    {"owner", LONG, ST_CONFINED_KILLED, "signal 31"},
    {"fork", LONG, ST_CONFINED_KILLED, "signal 31"},
    {"kill", LONG, ST_CONFINED_KILLED, "signal 31"},
    {"exec", LONG, ST_CONFINED_KILLED, "signal 31"},
    {"code", LONG, ST_CONFINED_KILLED, "signal 31"},
    {"lie", LONG, ST_CONFINED_KILLED, ""},
};
#endif

static void it_fails(const struct failure *f)
{
    struct st_confined c = {.patience = f->patience};
    struct st_confined_end end;
    struct st_error err;
    char to[64];
    int before = descriptors();
    size_t n;

    assert_int_equal(ask(&c, f->name, -1, to, sizeof(to), &err), ST_EFAIL);
    assert_has(err.text, "cannot read the functions of '/bin/x': ");
    if (strcmp(f->name, "lie"))
        assert_has(err.text, f->text);
    assert_has(err.text, "\n  the file may be damaged, or made to do harm");
    assert_int_equal(c.pid, 0);
    assert_no_child();
    c.patience = LONG;
    assert_int_equal(ask(&c, "all", -1, to, sizeof(to), &err), sizeof(to)); /* by a new one */
    st_confined_close(&c);
    assert_no_child();
    assert_int_equal(run(f->name, f->patience, &end, &n), -1);
    if (strcmp(f->name, "lie"))
        assert_int_equal(end.how, f->how);
    else
        assert_int_not_equal(end.how, ST_CONFINED_DONE);
    assert_int_equal(descriptors(), before);
}

static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
        it_fails(&failures[i]);
}

static void test_forbidden(void **state)
{
    (void)state;
#ifdef ST_SANITIZED
    print_message("skipped: under the sanitizers there is no filter\n");
    skip();
#else
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        it_fails(&forbidden[i]);
#endif
}

static void test_memory_is_bounded(void **state)
{
    struct st_confined c = {.patience = LONG};
    struct st_error err;
    char to[64];

    (void)state;
#ifdef ST_SANITIZED
    print_message("skipped: under the sanitizers memory has no bound\n");
    skip();
#endif
    assert_int_equal(ask(&c, "memory", -1, to, sizeof(to), &err), ST_ENOMEM);
    assert_string_equal(err.text, "cannot read the functions of '/bin/x': Cannot allocate memory");
    st_confined_close(&c);
}

/* Who owns a thousand files must not make us wait for each. */
static void test_it_gives_up(void **state)
{
    struct st_confined c = {.patience = LONG};
    struct st_error err;
    char to[64];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(&c, "exit", -1, to, sizeof(to), &err), ST_EFAIL);
    *worked = 0;
    assert_int_equal(ask(&c, "all", -1, to, sizeof(to), &err), ST_EFAIL);
    assert_has(err.text, "has failed 3 times, and is not started again");
    assert_int_equal(*worked, 0);
    assert_no_child();
}

static void test_fails_closed(void **state)
{
    struct st_confined c = {.patience = LONG};
    struct st_confined_end end;
    struct st_error err;
    char to[64];
    size_t n;

    (void)state;
    if (geteuid()) {
        print_message("skipped: needs root\n");
        skip();
    }
    *worked = 0;
    refuse = true;
    assert_int_equal(ask(&c, "all", -1, to, sizeof(to), &err), ST_ECANNOT);
    assert_has(
        err.text,
        "could not give up its own: Operation not permitted\n  in a container, give it the capabilities");
    assert_int_equal(run("all", LONG, &end, &n), -1);
    assert_int_equal(end.how, ST_CONFINED_REFUSED);
    assert_int_equal(end.detail, EPERM);
    assert_int_equal(*worked, 0);
    assert_no_child();
}

static int set_up(void **state)
{
    (void)state;
    refuse = false;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_answers, set_up),
        cmocka_unit_test_setup(test_nothing_to_do, set_up),
        cmocka_unit_test_setup(test_failures, set_up),
        cmocka_unit_test_setup(test_forbidden, set_up),
        cmocka_unit_test_setup(test_memory_is_bounded, set_up),
        cmocka_unit_test_setup(test_it_gives_up, set_up),
        cmocka_unit_test_teardown(test_fails_closed, set_up),
    };

    worked = mmap(NULL, sizeof(*worked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (worked == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
