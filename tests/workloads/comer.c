/* Comes into a target late.
 *   comer stall              on each SIGUSR1 computes for 200 ms of CPU time in compute_here(), then sleeps
 * for 300 ms in sleep_here() comer into FOLDER COMMAND...  starts a command in a cgroup in which it is not
 * itself (clone3), prints its pid and waits for it comer rename NAME        has a second thread, and takes a
 * name on SIGUSR1; on the next, that thread does as `stall` does comer fork               on SIGUSR1: as
 * `stall`, in a child Each prints "ready" when it waits for the signal. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) void compute_here(void)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (unsigned long i = 0; i < 2000; i++)
            sum += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 200000000);
}

__attribute__((noinline)) void sleep_here(void)
{
    usleep(300 * 1000);
    __asm__ volatile(""); /* no tail call */
}

static void wait_for_word(void)
{
    sigset_t set;
    int sig;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    puts("ready");
    fflush(stdout);
    while (sigwait(&set, &sig) || sig != SIGUSR1)
        ;
}

static void stall(void)
{
    for (;;) {
        compute_here();
        sleep_here();
        wait_for_word();
    }
}

static int into(const char *folder, char **argv)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
    pid_t pid;

    if (fd < 0)
        return perror(folder), 1;
    args.cgroup = (uint64_t)fd;
    pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (!pid) {
        execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0)
        return perror("clone3"), 1;
    printf("pid %d\n", pid);
    fflush(stdout);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

static pthread_barrier_t renamed;

static void *second(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&renamed);
    stall();
    return NULL;
}

static void rename_late(const char *name)
{
    pthread_t thread;

    pthread_barrier_init(&renamed, NULL, 2);
    pthread_create(&thread, NULL, second, NULL);
    wait_for_word();
    prctl(PR_SET_NAME, name);
    wait_for_word(); /* until others have looked */
    pthread_barrier_wait(&renamed);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    sigset_t set;

    if (argc > 3 && !strcmp(argv[1], "into"))
        return into(argv[2], argv + 3);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (argc == 3 && !strcmp(argv[1], "rename")) {
        rename_late(argv[2]);
    } else if (argc == 2 && !strcmp(argv[1], "stall")) {
        wait_for_word();
        stall();
    } else if (argc == 2 && !strcmp(argv[1], "fork")) {
        wait_for_word();
        if (!fork())
            stall();
        wait(NULL);
    }
    fprintf(stderr, "usage: comer stall | fork | rename NAME | into FOLDER COMMAND...\n");
    return 2;
}
