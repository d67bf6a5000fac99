/* Threads that are born, wait, are woken and end, while the recorder may be stopped: to test that nothing of
 * them needs it in time. When a byte comes on stdin, four threads one after the other: each reads from a
 * pipe, and is written to once it sleeps in that. A line a thread, its number; then "done", and the end with
 * stdin's. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4 };

static int ends[2];
static atomic_int tid;

static void *wait_for_byte(void *unused)
{
    char c;

    (void)unused;
    atomic_store(&tid, (int)syscall(SYS_gettid));
    if (read(ends[0], &c, 1) != 1)
        exit(1);
    return NULL;
}

/* In its read, and no longer on a CPU: nr of the system call, then the arguments (proc(5), syscall). */
static int sleeps_in_read(int thread)
{
    char path[64], state[64] = "", call[64] = "", *behind;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    f = fopen(path, "re");
    if (!f || !fgets(state, sizeof(state), f))
        exit(1);
    fclose(f);
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
    f = fopen(path, "re");
    if (!f || !fgets(call, sizeof(call), f))
        exit(1);
    fclose(f);
    behind = strrchr(state, ')');
    return behind && behind[2] == 'S' && !strncmp(call, "0 ", 2);
}

int main(void)
{
    char c;

    if (pipe(ends) || read(0, &c, 1) != 1)
        return 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;

        atomic_store(&tid, 0);
        if (pthread_create(&thread, NULL, wait_for_byte, NULL))
            return 1;
        while (!atomic_load(&tid) || !sleeps_in_read(atomic_load(&tid)))
            sched_yield();
        if (write(ends[1], "x", 1) != 1 || pthread_join(thread, NULL))
            return 1;
        printf("%d\n", atomic_load(&tid));
    }
    puts("done");
    fflush(stdout);
    return read(0, &c, 1) == 0 ? 0 : 1;
}
