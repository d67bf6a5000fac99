/* Children that block. */
#include "workload.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t workload_now(void)
{
    return st_kernel_ns();
}

pid_t workload_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

void workload_sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    while (nanosleep(&t, &t))
        ;
}

/* Of real-time priority: then a busy machine does not add waits of its own. */
static void set_priority(bool real_time)
{
    struct sched_param param = {.sched_priority = real_time ? 1 : 0};

    if (sched_setscheduler(0, real_time ? SCHED_FIFO : SCHED_OTHER, &param))
        _exit(1);
}

void workload_be_ordinary(void)
{
    set_priority(false);
}

static void run_child(struct workload *w, workload_fn *fn)
{
    struct pollfd fd = {.fd = w->go[0], .events = POLLIN};

    set_priority(true);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(w->go[1]);
    workload_now(); /* the first time it reads a file, which is no part of what is watched */
    if (poll(&fd, 1, -1) == 1 && fd.revents & POLLIN)
        fn(w);
    _exit(0);
}

void workload_fork(struct workload *w, workload_fn *fn)
{
    assert_int_equal(pipe(w->go), 0);
    w->shared = mmap(NULL, sizeof(*w->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(w->shared != MAP_FAILED);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (!w->pid)
        run_child(w, fn);
    close(w->go[0]);
}

void workload_go(struct workload *w)
{
    w->go_ns = workload_now();
    assert_int_equal(write(w->go[1], "g", 1), 1);
}

void workload_reap(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

void workload_wait(struct workload *w)
{
    workload_reap(w->pid);
    close(w->go[1]);
    munmap(w->shared, sizeof(*w->shared));
}

void workload_end(struct workload *w, uint64_t start_ns)
{
    uint64_t end = workload_now();
    uint32_t i = w->shared->stalls++;

    if (i < WORKLOAD_STALLS)
        w->shared->stall[i] = (struct workload_stall){start_ns, end, workload_tid()};
}

__attribute__((noinline)) void workload_read_fed(struct workload *w, int fd)
{
    uint64_t start = workload_now();
    char byte;

    w->shared->asked++;
    if (read(fd, &byte, 1) != 1)
        _exit(1);
    workload_end(w, start);
}

/* Whether the thread sleeps (state S or D in /proc/PID/stat, proc(5)). */
bool workload_sleeps(pid_t pid)
{
    char path[32], state = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        _exit(1);
    fclose(f);
    return state == 'S' || state == 'D';
}

pid_t workload_feeder(struct workload *w, int fd, int ms, int n)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid)
        return pid;
    set_priority(true);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < n; i++) {
        while (w->shared->asked <= i || !workload_sleeps(w->pid))
            workload_sleep_ms(1);
        workload_sleep_ms(ms);
        if (write(fd, "x", 1) != 1)
            _exit(1);
    }
    _exit(0);
}
