/* The packets of a stepped process, decoded by libipt, are exactly the instructions that the stepper saw
 * executed, for every kind of branch and for all that happens to a process. */
#include "tests/unit/recorder/step_harness.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

/* ------------------------------------------------------------------ */
/* Programs. Each runs in a child and returns its exit status.         */

static int conditional_branches(void)
{
    long n = 20, zero = 0, sum = 0;

    __asm__ volatile("1: add $1, %1\n"
                     "test $3, %0\n"
                     "jz 2f\n"
                     "add $1, %1\n"
                     "2: dec %0\n"
                     "jnz 1b\n"
                     "mov $5, %%rcx\n"
                     "3: loop 3b\n"
                     "jrcxz 4f\n"
                     "ud2\n"
                     "4: jz 5f\n"
                     "5: jmp 6f\n"
                     "ud2\n"
                     "6:\n"
                     : "+r"(n), "+r"(sum)
                     : "r"(zero)
                     : "rcx", "cc");
    return sum == 35 ? 0 : 1;
}

__asm__(".pushsection .text\n"
        "call_zoo:\n"
        "push %rbx\n"
        "call 1f\n" /* zero length: a way to read the address */
        "1: pop %rbx\n"
        "call zoo_leaf\n"
        "lea zoo_leaf(%rip), %rax\n"
        "call *%rax\n"
        "push %rax\n"
        "call *(%rsp)\n"
        "pop %rax\n"
        "call zoo_tail\n"
        "call zoo_ret16\n"
        "lea 2f(%rip), %rax\n"
        "push %rax\n" /* a return that nobody called */
        "ret\n"
        "ud2\n"
        "2: call zoo_retpoline\n"
        "mov %cs, %eax\n" /* a far return */
        "push %rax\n"
        "lea 3f(%rip), %rax\n"
        "push %rax\n"
        "lretq\n"
        "ud2\n"
        "3: mov %rsp, %rbx\n" /* IRET */
        "mov %ss, %eax\n"
        "push %rax\n"
        "push %rbx\n"
        "pushfq\n"
        "mov %cs, %eax\n"
        "push %rax\n"
        "lea 4f(%rip), %rax\n"
        "push %rax\n"
        "iretq\n"
        "ud2\n"
        "4: mov %ss, %eax\n" /* no trap comes behind this */
        "mov %eax, %ss\n"
        "jmp 5f\n"
        "5: pop %rbx\n"
        "ret\n"
        "zoo_leaf: ret\n"
        "zoo_tail: jmp zoo_leaf\n"
        "zoo_ret16: pop %rdx\n"
        "sub $16, %rsp\n"
        "push %rdx\n"
        "ret $16\n"
        "zoo_retpoline: lea zoo_leaf(%rip), %r11\n"
        "call 7f\n"
        "6: pause\n"
        "jmp 6b\n"
        "7: mov %r11, (%rsp)\n"
        "ret\n"
        ".popsection\n");
void call_zoo(void);

static int calls_and_returns(void)
{
    for (int i = 0; i < 3; i++)
        call_zoo();
    return 0;
}

static __attribute__((noinline)) int deep(int n)
{
    int r = n ? deep(n - 1) : 0;

    __asm__ volatile("" : "+r"(r));
    return r + 1;
}

/* Deeper than the 64 calls that return compression keeps; long enough for some PSBs. */
static int recursion(void)
{
    int sum = 0;

    for (int i = 0; i < 40; i++)
        sum += deep(i * 4);
    return sum == 40 + 39 * 40 / 2 * 4 ? 0 : 1;
}

static char from[8192], to[8192];

static int repeated_strings(void)
{
    void *d = to, *s = from;
    size_t n = sizeof(to);
    size_t zero = 0, few = 3;

    from[5000] = 1;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory");
    d = to, s = from, n = sizeof(to);
    __asm__ volatile("repe cmpsb" : "+D"(d), "+S"(s), "+c"(n)::"memory", "cc");
    if (n)
        return 1;
    d = to, n = sizeof(to);
    __asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(1) : "memory", "cc");
    if ((char *)d != to + 5001)
        return 2;
    d = to;
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(zero) : "a"(7) : "memory");
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(few) : "a"(7) : "memory");
    return to[2] == 7 && !to[3] ? 0 : 3;
}

/* The trap flag that stepping sets must not be seen, nor stay. */
static int flags(void)
{
    unsigned long before, after;
    unsigned short small;

    __asm__ volatile("pushfq\n pop %0\n" : "=r"(before));
    __asm__ volatile("pushfw\n popw %0\n" : "=r"(small));
    __asm__ volatile("pushfq\n popfq\n pushfq\n pop %0\n" : "=r"(after));
    return (before | after | small) & 0x100 ? 1 : 0;
}

static volatile sig_atomic_t caught[65];

static void handler(int sig)
{
    caught[sig]++;
}

static void catch (int sig, int flag)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flag};

    sigfillset(&action.sa_mask);
    sigaction(sig, &action, NULL);
}

static int signals(void)
{
    catch (SIGUSR1, 0);
    catch (SIGUSR2, SA_RESTART);
    catch (SIGTRAP, 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    kill(getpid(), SIGUSR2);
    __asm__ volatile("int3");
    raise(SIGTRAP);
    kill(getpid(), SIGTRAP);
    raise(SIGURG); /* ignored */
    return caught[SIGUSR1] == 1 && caught[SIGUSR2] == 2 && caught[SIGTRAP] == 3 ? 0 : 1;
}

static sigjmp_buf back;

static void jump_back(int sig)
{
    caught[sig]++;
    siglongjmp(back, 1);
}

static int faults(void)
{
    struct sigaction action = {.sa_handler = jump_back};
    volatile int i;

    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    for (i = 0; i < 2; i++)
        if (!sigsetjmp(back, 1))
            __asm__ volatile("movl $1, 8");
    if (!sigsetjmp(back, 1))
        __asm__ volatile("xor %%ecx, %%ecx\n div %%ecx" ::: "eax", "ecx", "edx");
    if (!sigsetjmp(back, 1))
        __asm__ volatile("ud2");
    if (!sigsetjmp(back, 1))
        __asm__ volatile("mov $16, %%eax\n call *%%rax" ::: "rax", "memory"); /* no code there at all */
    return caught[SIGSEGV] == 3 && caught[SIGFPE] == 1 && caught[SIGILL] == 1 ? 0 : 1;
}

static int system_calls(void)
{
    struct timespec t;
    int pipes[2];
    char byte;

    for (int i = 0; i < 20; i++)
        if (syscall(SYS_getppid) < 0)
            return 1;
    clock_gettime(CLOCK_MONOTONIC, &t); /* the vdso */
    if (pipe(pipes) || write(pipes[1], "a", 1) != 1 || read(pipes[0], &byte, 1) != 1)
        return 2;
    if (syscall(SYS_epoll_wait, -1, NULL, 0, 0) >= 0 || errno == EINTR)
        return 3;
    return usleep(1000);
}

static bool has_vsyscall(void)
{
    char line[256];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps && fgets(line, sizeof(line), maps))
        found = found || strstr(line, "[vsyscall]");
    if (maps)
        fclose(maps);
    return found;
}

static int vsyscall(void)
{
    long (*vtime)(long *) = (long (*)(long *))0xffffffffff600400;
    long now = vtime(NULL);

    return now > 1000000000 && vtime(NULL) >= now ? 0 : 1;
}

static void *thread(void *arg)
{
    for (int i = 0; i < 50; i++)
        deep((int)(long)arg);
    return NULL;
}

static int threads(void)
{
    pthread_t t[4];

    for (long i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, thread, (void *)(i + 3)))
            return 1;
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return 0;
}

static int children(void)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(deep(5));
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 6)
        return 1;
    pid = vfork();
    if (!pid) {
        execl(EXITS_AT_ONCE, "exits_at_once", (char *)NULL);
        _exit(1);
    }
    if (waitpid(pid, &status, 0) != pid || status)
        return 2;
    return 0;
}

static void *exec_thread(void *unused)
{
    (void)unused;
    execl(EXITS_AT_ONCE, "exits_at_once", (char *)NULL);
    return NULL;
}

/* exec by a thread that is not the leader: the others end, it takes the process's id. */
static int exec_in_thread(void)
{
    pthread_t t[3];

    pthread_create(&t[0], NULL, thread, (void *)200L);
    pthread_create(&t[1], NULL, exec_thread, NULL);
    pthread_join(t[0], NULL);
    return pause();
}

/* Code that is written while it runs, the way a JIT does, and mappings that change under the same address. */
static int changing_code(void)
{
    static const uint8_t plain[] = {0x31, 0xc0, 0x90, 0x90,
                                    0xff, 0xc0, 0xc3}; /* xor eax,eax; nop; nop; inc eax; ret */
    static const uint8_t taken[] = {0x31, 0xc0, 0x74, 0x00,
                                    0xff, 0xc0, 0xc3}; /* jz to the next instruction */
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;

    for (int i = 0; i < 6; i++) {
        memcpy(code, i & 1 ? taken : plain, sizeof(plain));
        sum += ((int (*)(void))code)();
    }
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 2; i++) {
        sum += ((int (*)(void))code)();
        code = mmap(code, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy(code, plain, sizeof(plain));
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
    }
    return sum == 8 ? 0 : 1;
}

/* 64-bit code, 32-bit code, and back (by far transfers). */
__asm__(".pushsection .text\n"
        "go_32:\n"
        "push %rbx\n"
        "mov %rsp, %rbx\n"
        "mov %rdi, %rsp\n"
        "push $0x23\n"
        "push %rsi\n"
        "lretq\n"
        "go_32_back:\n"
        "mov %rbx, %rsp\n"
        "pop %rbx\n"
        "ret\n"
        ".popsection\n");
void go_32(void *stack, void *code);
extern const char go_32_back[];

static int mode_32(void)
{
    /* push %eax; call 1f; dec %eax; jnz; ... far return through an address on the stack */
    static const uint8_t code32[] = {
        0xb9, 3,    0, 0, 0, /* mov $3, %ecx */
        0xe8, 4,    0, 0, 0, /* call 1f */
        0x49,                /* dec %ecx: in 64-bit code a prefix */
        0x75, 0xf8,          /* jnz the call */
        0xcb,                /* lret */
        0xc3,                /* 1: ret */
    };
    uint8_t *low =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    uint32_t *stack = (uint32_t *)(low + 8192 - 64);
    /* movabs go_32_back, %rax; jmp *%rax */
    uint8_t *island = low + 2048;
    uint64_t address = (uint64_t)go_32_back;

    memcpy(low, code32, sizeof(code32));
    memcpy(island, "\x48\xb8", 2);
    memcpy(island + 2, &address, 8);
    memcpy(island + 10, "\xff\xe0", 2);
    stack[0] = (uint32_t)(uintptr_t)island;
    stack[1] = 0x33;
    go_32(stack, low);
    return 0;
}

/* A restartable sequence that adds to a counter: stopped within, it starts anew, for ever if nobody takes
 * care. */
__asm__(".pushsection .text\n"
        "rseq_add:\n"
        "lea rseq_add_cs(%rip), %rax\n"
        "mov %rax, 8(%rdi)\n"
        "1: mov (%rsi), %rcx\n"
        "test %rcx, %rcx\n"
        "js 4f\n"
        "inc %rcx\n"
        "mov %rcx, (%rsi)\n"
        "2: movq $0, 8(%rdi)\n"
        "4: ret\n"
        ".long 0x53053053\n" /* RSEQ_SIG */
        "3: jmp rseq_add\n"
        ".popsection\n"
        ".pushsection .data.rel.ro, \"aw\"\n"
        ".balign 32\n"
        "rseq_add_cs: .long 0, 0\n"
        ".quad 1b, 2b - 1b, 3b\n"
        ".popsection\n");
void rseq_add(void *area, long *counter);

static int restartable_sequence(void)
{
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    long counter = 0;

    if (!__rseq_size)
        return 0; /* not registered */
    for (int i = 0; i < 200; i++)
        rseq_add(area, &counter);
    return counter == 200 ? 0 : 1;
}

static int nothing_more(void)
{
    return 0;
}

/* ------------------------------------------------------------------ */

/* Runs the program in a child, stepped from where it waits to its end; every ring must hold what was
 * executed. */
static void compare(int (*program)(void), int want_status, size_t want_rings)
{
    const struct rec_ring *rings;
    struct harness x;
    size_t n;
    pid_t pid;

    harness_log_begin();
    harness_fork(&x, NULL, program);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    assert_int_equal(harness_until_end(&x, 200), 0);
    harness_freeze(&x, &rings, &n);
    assert_true(harness_log->n < LOG_MAX);
    assert_int_equal(n, want_rings);
    for (size_t i = 0; i < n; i++) {
        struct harness_walk w = harness_compare(&rings[i]);

        assert_int_equal(rings[i].offset, 0);
        assert_true(w.compared > 20);
        assert_int_equal(w.errors, 0);
        assert_int_equal(w.differences, 0);
    }
    harness_resume(&x);
    harness_close(&x);
    harness_wait(&x);
    assert_int_equal(x.status, want_status);
}

#define PROGRAM_TEST(name, rings)                                                                            \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        compare(name, 0, rings);                                                                             \
    }

PROGRAM_TEST(nothing_more, 1)
PROGRAM_TEST(conditional_branches, 1)
PROGRAM_TEST(calls_and_returns, 1)
PROGRAM_TEST(recursion, 1)
PROGRAM_TEST(repeated_strings, 1)
PROGRAM_TEST(flags, 1)
PROGRAM_TEST(signals, 1)
PROGRAM_TEST(faults, 1)
PROGRAM_TEST(system_calls, 1)
PROGRAM_TEST(threads, 5)
PROGRAM_TEST(children, 3)
PROGRAM_TEST(changing_code, 1)
PROGRAM_TEST(mode_32, 1)
PROGRAM_TEST(restartable_sequence, 1)

static void test_exec_in_thread(void **state)
{
    (void)state;
    compare(exec_in_thread, 0, 3);
}

static void test_vsyscall(void **state)
{
    (void)state;
    if (has_vsyscall())
        compare(vsyscall, 0, 1);
}

/* The address at which a program that is not relocated begins. */
static uint64_t entry_of(const char *path)
{
    FILE *f = fopen(path, "re");
    uint64_t entry = 0;

    assert_non_null(f);
    assert_int_equal(fseek(f, 0x18, SEEK_SET), 0); /* e_entry */
    assert_int_equal(fread(&entry, sizeof(entry), 1, f), 1);
    fclose(f);
    return entry;
}

/* A command is recorded from its first instruction; nothing of what came before its exec. */
static void test_command(void **state)
{
    char *const argv[] = {EXITS_AT_ONCE, NULL};
    const struct rec_ring *rings;
    struct harness_walk w;
    struct harness x;
    size_t n;

    (void)state;
    harness_log_begin();
    harness_arm_command(&x, argv);
    assert_int_equal(harness_until_end(&x, 200), 0);
    harness_freeze(&x, &rings, &n);
    assert_int_equal(n, 1);
    w = harness_compare(&rings[0]);
    assert_int_equal(w.errors, 0);
    assert_int_equal(w.differences, 0);
    assert_true(w.compared > 50);
    assert_int_equal(harness_log->insn[0].ip, entry_of(EXITS_AT_ONCE));
    harness_resume(&x);
    harness_close(&x);
    harness_wait(&x);
    assert_int_equal(x.status, 0);
}

static void test_without_ret_compression(void **state)
{
    (void)state;
    step_no_ret_compression = true;
    compare(calls_and_returns, 0, 1);
    compare(recursion, 0, 1);
    step_no_ret_compression = false;
}

static void test_without_breakpoints(void **state)
{
    (void)state;
    step_no_breaks = true;
    compare(repeated_strings, 0, 1);
    compare(flags, 0, 1);
    compare(calls_and_returns, 0, 1);
    compare(signals, 0, 1);
    step_no_breaks = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_more),
        cmocka_unit_test(test_conditional_branches),
        cmocka_unit_test(test_calls_and_returns),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_repeated_strings),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_vsyscall),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_exec_in_thread),
        cmocka_unit_test(test_changing_code),
        cmocka_unit_test(test_mode_32),
        cmocka_unit_test(test_restartable_sequence),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_without_ret_compression),
        cmocka_unit_test(test_without_breakpoints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
