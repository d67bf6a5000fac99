/* What newborn.data.zst is a recording of: threads that are born while they are recorded, wait, are woken by
 * each other and by a timer, and end. It has no C library, so that all its code is kept here, a few
 * kilobytes:
 *
 *     cc -O1 -fno-omit-frame-pointer -fno-stack-protector -fcf-protection=none
 * -fno-asynchronous-unwind-tables \ -nostdlib -static -Wl,--build-id -o newborn newborn.c */
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/time_types.h>
#include <sys/syscall.h>

enum {
    MOMENT = 400000, /* rounds: half a millisecond or so */
    STACK = 16384,
    FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
            CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
};

#define OWN __attribute__((noinline, noclone))

static int to_reader[2], from_reader[2];
static int alive[2];
static char stacks[2][STACK] __attribute__((aligned(16)));

static inline long system_call(long nr, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    long rax = nr;

    __asm__ volatile("syscall" : "+a"(rax) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return rax;
}

/* The thread runs `fn` on the stack that ends at `top`; *running is not 0 until it has ended. */
__attribute__((naked)) static void start_thread(void *top, void (*fn)(void), int *running)
{
    __asm__("mov %%rsi, -16(%%rdi)\n\t"
            "lea -16(%%rdi), %%rsi\n\t"
            "mov %%rdx, %%r10\n\t"
            "mov %0, %%edi\n\t"
            "mov $56, %%eax\n\t"
            "syscall\n\t"
            "test %%eax, %%eax\n\t"
            "jnz 1f\n\t"
            "xor %%ebp, %%ebp\n\t"
            "pop %%rax\n\t"
            "call *%%rax\n\t"
            "xor %%edi, %%edi\n\t"
            "mov $60, %%eax\n\t"
            "syscall\n\t"
            "1: ret" ::"i"(FLAGS));
}

OWN void work(long moments)
{
    for (volatile long n = 0; n < moments * MOMENT; n++)
        ;
}

OWN void parse(void)
{
    work(4);
}

OWN void digest(void)
{
    work(5);
}

OWN void flush(void)
{
    work(3);
}

OWN void pause_for(long ms)
{
    struct __kernel_timespec t = {.tv_nsec = ms * 1000000};

    system_call(SYS_nanosleep, (long)&t, 0, 0, 0);
}

OWN void take(int fd)
{
    char c;

    system_call(SYS_read, fd, (long)&c, 1, 0);
}

OWN void give(int fd)
{
    system_call(SYS_write, fd, (long)"x", 1, 0);
}

OWN void join(int *running)
{
    int tid;

    while ((tid = *(volatile int *)running))
        system_call(SYS_futex, (long)running, FUTEX_WAIT, tid, 0);
}

OWN void reader(void)
{
    take(to_reader[0]);
    digest();
    give(from_reader[1]);
    flush();
}

OWN void sleeper(void)
{
    pause_for(3);
    digest();
}

OWN void serve(void)
{
    parse();
    start_thread(stacks[0] + STACK, reader, &alive[0]);
    pause_for(4);
    give(to_reader[1]);
    take(from_reader[0]);
    parse();
    join(&alive[0]);
    start_thread(stacks[1] + STACK, sleeper, &alive[1]);
    join(&alive[1]);
    flush();
}

void run(void)
{
    take(0); /* until it may begin */
    if (!system_call(SYS_pipe2, (long)to_reader, 0, 0, 0) &&
        !system_call(SYS_pipe2, (long)from_reader, 0, 0, 0))
        serve();
    system_call(SYS_exit_group, 0, 0, 0, 0);
}

__attribute__((naked)) void _start(void)
{
    __asm__("xor %ebp, %ebp\n\t"
            "call run");
}
