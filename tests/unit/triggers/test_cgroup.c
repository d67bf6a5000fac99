/* Every kind on a cgroup: what a process in it does is told, what the same program does outside is not. */
#include "../../workloads/probe_note.h"
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMES  13
#define LONG   40      /* ms */
#define MARKER 1234567 /* of getpriority: a process that is not there */

static char folder[128];

static void compute(int ms)
{
    uint64_t start = workload_now();

    while (workload_now() - start < (uint64_t)ms * MS)
        ;
}

__attribute__((noinline)) void cgroup_slow(void)
{
    if (syscall(SYS_getpriority, 0, MARKER) == 12345)
        _exit(1);
    workload_sleep_ms(LONG);
}

/* Two ends of a connection on the loopback. */
static void connect_pair(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &size) ||
        connect(ends[0], (struct sockaddr *)&at, size) || (ends[1] = accept(listener, NULL, NULL)) < 0)
        _exit(1);
    close(listener);
}

/* What every kind sees, so often: a probe, a function and a system call that take long, a loop that is away,
 * data that is not read. */
static void do_all(struct workload *w)
{
    char byte;
    int ends[2];

    connect_pair(ends);
    for (int i = 0; i < TIMES; i++) {
        uint64_t start = workload_now();

        probe(i);
        if (write(ends[0], "x", 1) != 1)
            _exit(1);
        cgroup_slow();
        compute(LONG);
        poll(NULL, 0, 1);
        if (read(ends[1], &byte, 1) != 1)
            _exit(1);
        workload_end(w, start);
    }
    close(ends[0]);
    close(ends[1]);
}

static void join_folder(pid_t pid)
{
    char name[192], text[16];
    int fd;

    snprintf(name, sizeof(name), "%s/cgroup.procs", folder);
    fd = open(name, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(write(fd, text, (size_t)snprintf(text, sizeof(text), "%d", pid)) > 0);
    close(fd);
}

static int make_folder(void **state)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    (void)state;
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        char procs[128];

        snprintf(procs, sizeof(procs), "%s/cgroup.procs", roots[i]);
        snprintf(folder, sizeof(folder), "%s/stalltrap-kinds-%d", roots[i], getpid());
        if (!access(procs, W_OK) && !mkdir(folder, 0755))
            return 0;
    }
    folder[0] = '\0';
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return folder[0] ? rmdir(folder) : 0;
}

static size_t fired_of(const struct watch *w, pid_t pid)
{
    size_t n = 0;

    for (size_t i = 0; i < w->records.n; i++)
        n += w->records.at[i].r.pid == (uint32_t)pid && w->records.at[i].r.flags & ST_STALL_FIRED;
    return n;
}

/* What goes on when they have ended (a silence) need not end. */
static void collect(struct watch *w, const struct workload *inside, const struct workload *outside,
                    size_t least)
{
    for (int i = 0; i < 1500 && (inside->shared->stalls < TIMES || outside->shared->stalls < TIMES ||
                                 fired_of(w, inside->pid) < least);
         i++)
        watch_collect(w, w->records.n + 1, 20);
    watch_collect(w, SIZE_MAX, SETTLE);
}

/* For the reader of a failure. */
static void show_others(const struct watch *w, const struct workload *inside, const struct workload *outside)
{
    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        if (r->pid != (uint32_t)inside->pid)
            print_message(
                "thread %u of process %u (%s) \"%.16s\": %lu us from %ld us on, state %u, system call %d, "
                "flags %#x\n",
                r->tid, r->pid, r->pid == (uint32_t)outside->pid ? "outside" : "another", r->comm,
                r->measured_ns / 1000, (long)(r->start_ktime - inside->go_ns) / 1000, r->state, r->syscall,
                r->flags);
    }
}

/* The process inside does it `least` times at least and `most` at most. */
static void expect(const char *trigger, size_t least, size_t most)
{
    struct workload inside, outside;
    struct watch w;
    size_t told;

    NEEDS_BPF();
    if (!folder[0]) {
        print_message("skipped: no cgroup v2 folder that can be written\n");
        skip();
    }
    workload_fork(&outside, do_all);
    workload_fork(&inside, do_all);
    join_folder(inside.pid);
    watch_start(&w, trigger, NULL, 0, folder, NULL);
    workload_go(&outside);
    workload_go(&inside);
    collect(&w, &inside, &outside, least);
    told = fired_of(&w, inside.pid);
    if (told < least || told > most)
        fail_msg("%s: %zu fired of the one in the cgroup, not %zu to %zu", trigger, told, least, most);
    if (told != watch_count(&w, 0, ST_STALL_FIRED, 0)) {
        show_others(&w, &inside, &outside);
        fail_msg("%s: %zu fired of others", trigger, watch_count(&w, 0, ST_STALL_FIRED, 0) - told);
    }
    watch_stop(&w);
    workload_wait(&inside);
    workload_wait(&outside);
}

/* A trigger on a place in this program. */
static void expect_here(const char *format, size_t least, size_t most)
{
    char path[256] = "", trigger[512];

    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    snprintf(trigger, sizeof(trigger), format, path);
    expect(trigger, least, most);
}

static void test_syscall(void **state)
{
    (void)state;
    expect("syscall:clock_nanosleep>20ms", TIMES, TIMES);
}

static void test_func(void **state)
{
    (void)state;
    expect_here("func:%s!cgroup_slow>20ms", TIMES, TIMES);
}

static void test_call(void **state)
{
    (void)state;
    expect_here("call:%s!cgroup_slow", TIMES, TIMES);
}

static void test_usdt(void **state)
{
    (void)state;
    expect_here("usdt:%s:st_test:beat", TIMES, TIMES);
}

/* The first turn is away from a loop that was not watched yet; a loop that lost its CPU in a short turn may
 * be away too. */
static void test_busy(void **state)
{
    (void)state;
    expect("busy>20ms", TIMES - 1, 2 * TIMES);
}

static void test_socket(void **state)
{
    (void)state;
    expect("socket>20ms,side=unread", TIMES, TIMES);
}

static void test_tracepoint(void **state)
{
    (void)state;
    expect("tracepoint:syscalls:sys_enter_getpriority,if=who==1234567", TIMES, TIMES);
}

/* Each beat but the first ends a silence of two times LONG; the end of the last one may be another. */
static void test_quiet(void **state)
{
    (void)state;
    expect_here("quiet:%s!cgroup_slow>20ms", TIMES - 1, TIMES + 2);
}

static void test_offcpu(void **state)
{
    (void)state;
    expect("offcpu>20ms,idle=yes,state=sleeping", TIMES, TIMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syscall),    cmocka_unit_test(test_func),  cmocka_unit_test(test_call),
        cmocka_unit_test(test_usdt),       cmocka_unit_test(test_busy),  cmocka_unit_test(test_socket),
        cmocka_unit_test(test_tracepoint), cmocka_unit_test(test_quiet), cmocka_unit_test(test_offcpu),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
