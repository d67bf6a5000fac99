/* The child that reads what a JIT compiler wrote: what it may still do when it reads, and that it does not
 * read where it may do more. rec_perf_map_sort is the last that it calls before it answers; it waits there to
 * be looked at. */
#include "recorder/code/names.h"
#include "recorder/code/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE = 200000 /* ms */ };

enum attack { NONE, OPEN, SOCKET, NEW_CODE };

/* Of both processes. */
static struct shared {
    _Atomic int there, go; /* there: the child is at its end; go: it may go on */

    enum attack attack;

    bool refuse; /* setgroups() fails */

    bool hold;
} * shared;

struct place {
    char map_path[64];

    unsigned char *jit;
};

void __real_rec_perf_map_sort(struct rec_perf_map *map);
void __wrap_rec_perf_map_sort(struct rec_perf_map *map);
int __real_setgroups(size_t n, const gid_t *list);
int __wrap_setgroups(size_t n, const gid_t *list);

int __wrap_setgroups(size_t n, const gid_t *list)
{
    if (!shared || !shared->refuse)
        return __real_setgroups(n, list);
    errno = EPERM;
    return -1;
}

void __wrap_rec_perf_map_sort(struct rec_perf_map *map)
{
    atomic_store(&shared->there, 1);
    while (shared->hold && !atomic_load(&shared->go))
        ;
    if (shared->attack == OPEN)
        open("/etc/passwd", O_RDONLY);
    if (shared->attack == SOCKET)
        syscall(SYS_socket, 1, 1, 0);
    if (shared->attack == NEW_CODE)
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __real_rec_perf_map_sort(map);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    FILE *f;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    p->jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p->jit != MAP_FAILED);
    snprintf(p->map_path, sizeof(p->map_path), "/tmp/perf-%d.map", getpid());
    f = fopen(p->map_path, "w");
    assert_non_null(f);
    fprintf(f, "%lx 4 hot\n", (unsigned long)(uintptr_t)p->jit);
    fclose(f);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    munmap(p->jit, 4096);
    munmap(shared, sizeof(*shared));
    shared = NULL;
    unlink(p->map_path);
    free(p);
    return 0;
}

/* Returns the number of names; `why` as rec_code_names_read. */
static size_t read_names(char why[112])
{
    struct rec_perf_map map;
    size_t n;

    rec_code_names_read(getpid(), PATIENCE, &map, why, 112);
    n = map.symbols.n;
    rec_perf_map_free(&map);
    return n;
}

/* The child's /proc/PID/status, once it waits; then lets it go on. */
static void *look(void *to)
{
    char path[64] = "", *text = to;
    FILE *f;
    int pid = 0;

    while (!atomic_load(&shared->there))
        usleep(1000);
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    f = fopen(path, "r");
    if (f && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "r");
    text[f ? fread(text, 1, 8191, f) : 0] = '\0';
    if (f)
        fclose(f);
    atomic_store(&shared->go, 1);
    return NULL;
}

static void assert_line(const char *status, const char *line)
{
    if (!strstr(status, line))
        fail_msg("no \"%s\" in\n%s", line + 1, status);
}

static void it_has_given_up_everything(void **state)
{
    static char status[8192];
    char why[112];
    pthread_t looker;

    (void)state;
    shared->hold = true;
    assert_int_equal(pthread_create(&looker, NULL, look, status), 0);
    assert_int_equal(read_names(why), 1);
    pthread_join(looker, NULL);
    assert_string_equal(why, "");
    assert_line(status, "\nCapPrm:\t0000000000000000\n");
    assert_line(status, "\nCapEff:\t0000000000000000\n");
    assert_line(status, "\nCapInh:\t0000000000000000\n");
    assert_line(status, "\nNoNewPrivs:\t1\n");
#ifndef ST_SANITIZED
    assert_line(status, "\nSeccomp:\t2\n");
#endif
    if (geteuid())
        return;
    assert_line(status, "\nUid:\t65534\t65534\t65534\t65534\n");
    assert_line(status, "\nGid:\t65534\t65534\t65534\t65534\n");
    assert_line(status, "\nGroups:\t \n");
}

static void what_it_does_not_need_ends_it(void **state)
{
    static const enum attack attacks[] = {OPEN, SOCKET, NEW_CODE};
    char why[112];

    (void)state;
#ifdef ST_SANITIZED
    print_message("skipped: under the sanitizers there is no filter\n");
    skip();
#endif
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        shared->attack = attacks[i];
        assert_int_equal(read_names(why), 0);
        assert_string_equal(why, "names of code made at run time could not be read");
    }
}

static void it_reads_nothing_as_root(void **state)
{
    char why[112];

    (void)state;
    if (geteuid()) {
        print_message("skipped: needs root\n");
        skip();
    }
    shared->refuse = true;
    assert_int_equal(read_names(why), 0);
    assert_string_equal(
        why,
        "names of code made at run time were not read: the process that reads them could not be confined");
    assert_false(atomic_load(&shared->there));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_has_given_up_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_it_does_not_need_ends_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_reads_nothing_as_root, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
