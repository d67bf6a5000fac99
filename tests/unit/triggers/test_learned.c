/* idle=learned: a wait for work is one at a place where the thread usually waits. */
#include "spans.h"

#include "triggers/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OFTEN   150 /* more than WAIT_FIRST */
#define SELDOM  20
#define LEARNED BLOCKS ",idle=learned"

/* Where the workload waits for work. */
static __attribute__((noinline)) void wait_for_work(int ms)
{
    if (poll(NULL, 0, ms))
        _exit(1);
}

/* The same system call at the same address, but by another path. */
static __attribute__((noinline)) void wait_below(int ms)
{
    volatile char frame[1000];

    frame[0] = frame[999] = 0;
    wait_for_work(ms);
    frame[0] = 1;
}

/* The depth of the stack is a part of the place: these have no frame of their own, however it is compiled. */
#define IN_ITS_CALLER inline __attribute__((always_inline))

static IN_ITS_CALLER void wait_often(int times)
{
    for (int i = 0; i < times; i++)
        wait_for_work(1);
}

static IN_ITS_CALLER void note_sleep(struct workload *w)
{
    uint64_t start = workload_now();

    workload_sleep_ms(45);
    workload_end(w, start);
}

static void sleep_in_between(struct workload *w)
{
    wait_often(SELDOM);
    workload_sleep_ms(45); /* nothing is known of the thread yet */
    wait_often(OFTEN);
    note_sleep(w);
    wait_for_work(60); /* long, but where it always waits */
    note_sleep(w);
    wait_often(SELDOM);
    note_sleep(w);
}

/* ---- what is told of the places ---- */

struct seen {
    struct trg_waited polls, sleeps;

    bool restarted; /* restart_syscall is among them */

    size_t n;
};

static int see(void *ctx, const struct trg_waited *waited, struct st_error *err)
{
    struct seen *s = ctx;

    (void)err;
    s->n++;
    s->restarted |= !strcmp(waited->syscall, "restart_syscall");
    if (!strcmp(waited->syscall, "poll") && !s->polls.count)
        s->polls = *waited;
    if (!strcmp(waited->syscall, "clock_nanosleep"))
        s->sleeps = *waited;
    return 0;
}

static void look(struct watch *w, struct seen *seen)
{
    struct st_error err = {0};

    memset(seen, 0, sizeof(*seen));
    assert_int_equal(trg_each_waited(w->set, see, seen, &err), 0);
}

static void assert_places(struct watch *w, pid_t pid)
{
    struct seen seen;

    look(w, &seen);
    assert_int_equal(seen.polls.pid, pid);
    assert_true(seen.polls.learned);
    assert_true(seen.polls.count >= OFTEN + SELDOM && seen.polls.count <= seen.polls.all);
    assert_int_equal(seen.polls.unusual, 0);
    assert_true(seen.polls.longest_ns >= 60 * MS && seen.polls.longest_ns <= seen.polls.sum_ns);
    assert_int_equal(seen.sleeps.count, 4);
    assert_int_equal(seen.sleeps.unusual, 3);
    assert_true(seen.sleeps.longest_ns >= 45 * MS);
    assert_int_equal(seen.sleeps.tid, pid);
}

static void test_sleep_elsewhere_fires(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, sleep_in_between, &w, LEARNED, 3, 3);
    assert_int_equal(told_fired(&w, work.pid, SYS_clock_nanosleep), 3);
    assert_int_equal(told_fired(&w, work.pid, SYS_poll), 0);
    for (size_t i = 0; i < w.records.n; i++)
        assert_false(w.records.at[i].r.flags & ST_STALL_IDLE);
    assert_places(&w, work.pid);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- a wait that was cut in two ---- */

/* Stopped for a moment in its usual wait, which the kernel then goes on with by restart_syscall(). */
static void stopped_where_it_waits(struct workload *w)
{
    pid_t self = getpid(), helper;

    wait_often(OFTEN);
    helper = fork();
    if (!helper) {
        workload_sleep_ms(10);
        kill(self, SIGSTOP);
        workload_sleep_ms(5);
        kill(self, SIGCONT);
        _exit(0);
    }
    wait_for_work(200);
    if (waitpid(helper, NULL, 0) != helper)
        _exit(1);
    note_sleep(w);
}

static void test_a_wait_that_goes_on_is_where_it_was(void **state)
{
    struct workload work;
    struct watch w;
    struct seen seen;

    (void)state;
    NEEDS_BPF();
    told_run(&work, stopped_where_it_waits, &w, LEARNED, 1, 1);
    assert_int_equal(told_fired(&w, work.pid, SYS_restart_syscall), 0);
    look(&w, &seen);
    assert_true(seen.polls.count > OFTEN);
    assert_int_equal(seen.polls.unusual, 0);
    assert_false(seen.restarted);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- threads that live shortly ---- */

static void *serve_one(void *work)
{
    if (work)
        note_sleep(work);
    return NULL;
}

static void *wait_and_serve(void *work)
{
    wait_for_work(1);
    wait_for_work(1);
    return serve_one(work);
}

/* A thread a connection. Where they usually wait, if they do, is learned of all of them. */
static void serve_by(struct workload *w, void *(*serve)(void *))
{
    pthread_t thread;

    wait_often(SELDOM);
    for (int i = 0; i < OFTEN; i++)
        if (pthread_create(&thread, NULL, serve, i == 5 || i > OFTEN - 3 ? w : NULL) ||
            pthread_join(thread, NULL))
            _exit(1);
}

static void serve_by_threads(struct workload *w)
{
    serve_by(w, serve_one);
}

static void serve_by_threads_that_wait(struct workload *w)
{
    serve_by(w, wait_and_serve);
}

static void test_sleep_in_a_short_thread_fires(void **state)
{
    workload_fn *const servers[] = {serve_by_threads, serve_by_threads_that_wait};

    (void)state;
    NEEDS_BPF();
    for (size_t i = 0; i < 2; i++) {
        struct workload work;
        struct watch w;

        told_run(&work, servers[i], &w, LEARNED, 3, 2);
        assert_int_equal(told_fired(&w, 0, SYS_clock_nanosleep), 2);
        assert_int_equal(told_fired(&w, 0, SYS_poll), 0);
        watch_stop(&w);
        workload_wait(&work);
    }
}

/* ---- threads that do the same ---- */

static void *wait_seldom(void *work)
{
    wait_often(SELDOM);
    if (work)
        note_sleep(work);
    return NULL;
}

/* Another kind of thread: where it waits, no other does. */
static void *sleep_seldom(void *work)
{
    for (int i = 0; i < SELDOM; i++)
        workload_sleep_ms(1);
    note_sleep(work);
    return NULL;
}

/* None of them waits so often that it is known by itself; together those before the last are. */
static void serve_by_pool(struct workload *w)
{
    enum { BEFORE = 6 };
    pthread_t threads[BEFORE];

    for (int i = 0; i < BEFORE; i++)
        if (pthread_create(&threads[i], NULL, wait_seldom, NULL))
            _exit(1);
    for (int i = 0; i < BEFORE; i++)
        pthread_join(threads[i], NULL);
    sleep_seldom(w);
    if (pthread_create(&threads[0], NULL, wait_seldom, w) || pthread_join(threads[0], NULL))
        _exit(1);
}

/* The same by processes. */
static void serve_by_forks(struct workload *w)
{
    for (int i = 0; i < 7; i++) {
        pid_t child = fork();

        if (child == 0) {
            wait_seldom(i == 6 ? w : NULL);
            _exit(0);
        }
        if (child < 0 || waitpid(child, NULL, 0) != child)
            _exit(1);
        if (i == 5)
            sleep_seldom(w);
    }
}

static void test_threads_that_do_the_same_are_known_together(void **state)
{
    workload_fn *const servers[] = {serve_by_pool, serve_by_forks};

    (void)state;
    NEEDS_BPF();
    for (size_t i = 0; i < 2; i++) {
        struct workload work;
        struct watch w;

        told_run(&work, servers[i], &w, LEARNED, 2, 1);
        assert_int_equal(told_fired(&w, 0, SYS_clock_nanosleep), 1);
        assert_int_equal(told_fired(&w, work.pid, SYS_clock_nanosleep), i == 0);
        assert_int_equal(told_fired(&w, 0, SYS_poll), 0);
        watch_stop(&w);
        workload_wait(&work);
    }
}

static void test_list_stays_as_it_is(void **state)
{
    struct workload work;
    struct seen seen;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, sleep_in_between, &w, BLOCKS ",idle=list", 3, 0);
    assert_int_equal(told_fired(&w, work.pid, SYS_poll) + told_fired(&w, work.pid, SYS_clock_nanosleep), 0);
    look(&w, &seen); /* what was left out: that over the threshold */
    assert_false(seen.polls.learned);
    assert_true(seen.polls.longest_ns >= 60 * MS);
    assert_true(seen.polls.count >= 1 && seen.polls.count < OFTEN);
    assert_int_equal(seen.sleeps.count, 4);
    assert_true(seen.sleeps.longest_ns >= 45 * MS);
    watch_stop(&w);
    workload_wait(&work);
}

static void sleep_as_often(struct workload *w)
{
    for (int i = 0; i < OFTEN; i++) {
        wait_for_work(1);
        workload_sleep_ms(1);
    }
    note_sleep(w);
}

static void test_two_usual_places(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, sleep_as_often, &w, LEARNED, 1, 0);
    assert_int_equal(told_fired(&w, work.pid, SYS_poll) + told_fired(&w, work.pid, SYS_clock_nanosleep), 0);
    watch_stop(&w);
    workload_wait(&work);
}

static void wait_by_another_path(struct workload *w)
{
    uint64_t start;

    wait_often(OFTEN);
    start = workload_now();
    wait_below(45);
    workload_end(w, start);
}

static void test_path_tells_places_apart(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, wait_by_another_path, &w, LEARNED, 1, 1);
    assert_int_equal(told_fired(&w, work.pid, SYS_poll), 1);
    watch_stop(&w);
    workload_wait(&work);
}

static void test_path_is_not_looked_at(void **state)
{
    struct trg_config config = {.calls_alone = true};
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, wait_by_another_path);
    watch_start(&w, LEARNED, &work.pid, 1, NULL, &config);
    workload_go(&work);
    told_collect(&w, &work, 1, 0);
    assert_int_equal(told_fired(&w, work.pid, SYS_poll) + told_fired(&w, work.pid, SYS_clock_nanosleep), 0);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- what is waited on, where the path tells nothing ---- */

static uint32_t words[64][16]; /* each in a line of its own */

/* At one place for all words, as in a runtime. The time-out is a time, not a duration. */
static __attribute__((noinline)) void wait_on(size_t word, int ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000l;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    syscall(SYS_futex, words[word], FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static IN_ITS_CALLER void note_wait_on(struct workload *w, size_t word)
{
    uint64_t start = workload_now();

    wait_on(word, 45);
    workload_end(w, start);
}

static void wait_on_another_word(struct workload *w)
{
    for (int i = 0; i < OFTEN; i++)
        wait_on(0, 1);
    note_wait_on(w, 0);
    note_wait_on(w, 1);
}

static void wait_on_many_words(struct workload *w)
{
    for (size_t i = 0; i < OFTEN; i++)
        wait_on(i % 63, 1);
    note_wait_on(w, 63);
}

/* Every tenth wait is on the second word: often enough to be for work. */
static void wait_on_two_words(struct workload *w)
{
    for (size_t i = 0; i < 2 * OFTEN; i++)
        wait_on(i % 10 == 0, 1);
    note_wait_on(w, 1);
}

enum { IN_POOL = 30 }; /* waits of each thread: fewer than WAIT_FIRST */

/* None of a pool waits so often that it is known by itself. Each has a word of its own, as the threads of the
 * JVM have. */
static void *wait_on_own_word(void *arg)
{
    size_t own = (size_t)arg;

    for (int i = 0; i < IN_POOL; i++)
        wait_on(own, 1);
    return NULL;
}

static struct workload *pool_work;

static void *wait_on_own_word_and_another(void *arg)
{
    wait_on_own_word(arg);
    wait_on(0, 1); /* a lock of the JVM is waited for in pieces, each longer than the one before */
    wait_on(0, 8);
    note_wait_on(pool_work, 0);
    return NULL;
}

/* In this pool each thread waits on another word now and then: that is its work as well. */
static void *wait_on_own_word_and_others(void *arg)
{
    size_t own = (size_t)arg;

    for (size_t i = 0; i < IN_POOL; i++)
        wait_on(i % 10 == 9 ? 40 + i : own, 1);
    return NULL;
}

static void *wait_on_own_word_and_others_long(void *arg)
{
    wait_on_own_word_and_others(arg);
    note_wait_on(pool_work, 0);
    return NULL;
}

static void wait_in_pool(struct workload *w, void *(*before)(void *), void *(*last)(void *))
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];

    pool_work = w;
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, i < THREADS - 1 ? before : last, (void *)(i + 1)))
            _exit(1);
        pthread_join(threads[i], NULL);
    }
}

static void wait_elsewhere_in_pool(struct workload *w)
{
    wait_in_pool(w, wait_on_own_word, wait_on_own_word_and_another);
}

static void wait_on_others_in_pool(struct workload *w)
{
    wait_in_pool(w, wait_on_own_word_and_others, wait_on_own_word_and_others_long);
}

static void test_object_tells_waits_apart(void **state)
{
    static const struct {
        workload_fn *run;

        int waits, fire;
    } cases[] = {{wait_on_another_word, 2, 1},
                 {wait_on_many_words, 1, 0},
                 {wait_on_two_words, 1, 0},
                 {wait_elsewhere_in_pool, 1, 1},
                 {wait_on_others_in_pool, 1, 0}};
    struct trg_config config = {.calls_alone = true};

    (void)state;
    NEEDS_BPF();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct workload work;
        struct watch w;

        workload_fork(&work, cases[i].run);
        watch_start(&w, LEARNED, &work.pid, 1, NULL, &config);
        workload_go(&work);
        told_collect(&w, &work, cases[i].waits, cases[i].fire);
        if (told_fired(&w, 0, SYS_futex) != (size_t)cases[i].fire)
            fail_msg("case %zu: %zu fired", i, told_fired(&w, 0, SYS_futex));
        watch_stop(&w);
        workload_wait(&work);
    }
}

/* ---- busy ---- */

/* The third is in a loop that is not come back to. */
static void test_busy_counts_sleep_elsewhere(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, sleep_in_between, &w, "busy>20ms,idle=learned", 3, 2);
    assert_true(told_fired(&w, work.pid, SYS_clock_nanosleep) >= 2);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- code that is made while it runs ---- */

static void test_steady_stacks(void **state)
{
    pid_t self = getpid();
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &self, .npids = 1};
    struct st_target all = {.kind = ST_TARGET_ALL};
    void *code;

    (void)state;
    assert_true(trg_has_steady_stacks(&target));
    assert_false(trg_has_steady_stacks(&all));
    code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(code != MAP_FAILED);
    assert_false(trg_has_steady_stacks(&target));
    munmap(code, 4096);
}

/* A file that is mapped under that name. */
static void *map_as(const char *folder, const char *name)
{
    char path[128];
    void *at;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_true(fd >= 0 && !ftruncate(fd, 4096));
    at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(at != MAP_FAILED);
    close(fd);
    unlink(path);
    return at;
}

/* PCRE compiles into chunks of 64 KiB, and so does LuaJIT. */
static void test_regular_expressions_leave_stacks_steady(void **state)
{
    pid_t self = getpid();
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &self, .npids = 1};
    char folder[] = "/tmp/stalltrap-unit.XXXXXX";
    void *code, *regex, *lua;

    (void)state;
    assert_non_null(mkdtemp(folder));
    code = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(code != MAP_FAILED);
    assert_false(trg_has_steady_stacks(&target));
    regex = map_as(folder, "libpcre2-8.so.0");
    assert_true(trg_has_steady_stacks(&target));
    lua = map_as(folder, "libluajit-5.1.so.2");
    assert_false(trg_has_steady_stacks(&target));
    munmap(lua, 4096);
    munmap((char *)code + 4096, 4096);
    assert_false(trg_has_steady_stacks(&target));
    munmap(code, 1 << 16);
    munmap(regex, 4096);
    rmdir(folder);
}

static void test_names_of_places(void **state)
{
    struct st_confined child = {0};
    char text[256];

    (void)state;
    trg_name_place(&child, (uint32_t)getpid(), (uint64_t)&trg_has_steady_stacks + 1, text, sizeof(text));
    assert_non_null(strstr(text, "trg_has_steady_stacks+0x1 ("));
    trg_name_place(&child, (uint32_t)getpid(), 16, text, sizeof(text));
    assert_string_equal(text, "0x10");
    st_confined_close(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep_elsewhere_fires),
        cmocka_unit_test(test_a_wait_that_goes_on_is_where_it_was),
        cmocka_unit_test(test_sleep_in_a_short_thread_fires),
        cmocka_unit_test(test_threads_that_do_the_same_are_known_together),
        cmocka_unit_test(test_list_stays_as_it_is),
        cmocka_unit_test(test_two_usual_places),
        cmocka_unit_test(test_path_tells_places_apart),
        cmocka_unit_test(test_path_is_not_looked_at),
        cmocka_unit_test(test_object_tells_waits_apart),
        cmocka_unit_test(test_busy_counts_sleep_elsewhere),
        cmocka_unit_test(test_steady_stacks),
        cmocka_unit_test(test_regular_expressions_leave_stacks_steady),
        cmocka_unit_test(test_names_of_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
