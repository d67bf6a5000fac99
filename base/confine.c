/* Landlock, landlock(7), and filters of system calls, seccomp(2). */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534 };

/* Linux, include/uapi/linux/landlock.h; Debian's headers have the first field alone. */
struct landlock_rules {
    uint64_t files, net, scope;
};

/* Everything that Landlock knows of. Older kernels know less. */
void st_confine_landlock(void)
{
    static const struct {
        uint64_t files;

        size_t size;
    } versions[] = {{0x1fff, 8}, {0x3fff, 8}, {0x7fff, 8}, {0x7fff, 16}, {0xffff, 16}, {0xffff, 24}};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* which version? */);
    struct landlock_rules rules = {.net = 3, .scope = 3};
    int fd;

    if (version < 1)
        return;
    version = version > 6 ? 6 : version;
    rules.files = versions[version - 1].files;
    fd = (int)syscall(SYS_landlock_create_ruleset, &rules, versions[version - 1].size, 0);
    if (fd < 0)
        return;
    syscall(SYS_landlock_restrict_self, fd, 0);
    close(fd);
}

#define LOAD(field)                                                                                          \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what)               (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, what)
#define IF_EQUAL(value, yes, no)   (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define IF_ABOVE(value, yes, no)   (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, yes, no)
#define IF_ANY_BIT(value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value, yes, no)

/* "Where it is this call, allow it." Returns the number of instructions. */
static size_t put_call(struct sock_filter *to, int call)
{
    size_t n = 0;

    if (call != SYS_mmap && call != SYS_mprotect && call != SYS_fcntl) {
        to[n++] = IF_EQUAL((uint32_t)call, 0, 1);
        to[n++] = RETURN(SECCOMP_RET_ALLOW);
        return n;
    }
    to[n++] = IF_EQUAL((uint32_t)call, 0, 4);
    to[n++] = call == SYS_fcntl ? LOAD(args[1]) : LOAD(args[2]);
    to[n++] = call == SYS_fcntl ? IF_ABOVE(F_GETFL, 0, 1) : IF_ANY_BIT(PROT_EXEC, 0, 1);
    to[n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
    to[n++] = RETURN(SECCOMP_RET_ALLOW);
    return n;
}

/* Made by hand: libseccomp needs memory, and leaves out a rule that it has none for. */
int st_confine_calls(const int *calls, size_t n)
{
    struct sock_filter code[ST_CONFINE_MOST * 5 + 8];
    struct sock_fprog program = {.filter = code};
    size_t at = 0;

    if (n > ST_CONFINE_MOST) {
        errno = E2BIG;
        return -1;
    }
    code[at++] = LOAD(arch);
    code[at++] = IF_EQUAL(AUDIT_ARCH_X86_64, 1, 0);
    code[at++] = RETURN(SECCOMP_RET_KILL_PROCESS);
    code[at++] = LOAD(nr); /* those of x32 have a bit that none of the list has */
    for (size_t i = 0; i < n; i++)
        at += put_call(code + at, calls[i]);
    code[at++] = RETURN(SECCOMP_RET_KILL_PROCESS);
    program.len = (unsigned short)at;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* ---- all of it ---- */

/* Capabilities: capabilities(7), capset(2). */
static int drop_privileges(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0}, now[2] = {0};

    /* Root's exec would give them back; this forbids it, with or without the bounding set, which only
     * CAP_SETPCAP can empty. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) || syscall(SYS_capget, &header, now))
        return -1;
    if (!now[0].effective && !now[1].effective && !now[0].permitted && !now[1].permitted)
        return 0;
    errno = EPERM;
    return -1;
}

static void bound(int resource, rlim_t most)
{
    const struct rlimit limit = {most, most};

    setrlimit(resource, &limit);
}

static void bound_memory(size_t most)
{
#ifdef ST_SANITIZED
    (void)most; /* its library maps terabytes */
#else
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu", &pages) == 1)
        bound(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + most);
    if (f)
        fclose(f);
#endif
}

/* Where memory runs out, it is this process that has to go. */
static void go_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "1000", 4) < 0)
        errno = 0; /* it is one reason among others to have bounds */
    close(fd);
}

/* What reading files, keeping what is in them, taking questions and answering takes. */
static int keep_calls(void)
{
    static const int calls[] = {
        SYS_read,          SYS_pread64,    SYS_lseek,           SYS_fstat,   SYS_newfstatat,
        SYS_fcntl,         SYS_write,      SYS_close,           SYS_mmap,    SYS_munmap,
        SYS_mremap,        SYS_mprotect,   SYS_madvise,         SYS_brk,     SYS_futex,
        SYS_clock_gettime, SYS_getrandom,  SYS_sysinfo,         SYS_recvmsg, SYS_rt_sigprocmask,
        SYS_exit,          SYS_exit_group, SYS_restart_syscall,
    };

#ifdef ST_SANITIZED
    return 0; /* its library's own work takes others */
#endif
    st_confine_landlock();
    return st_confine_calls(calls, sizeof(calls) / sizeof(calls[0]));
}

/* Where a container refuses it, the process ends: to read what others wrote as root is worse. */
static int leave_root(void)
{
    if (geteuid())
        return 0;
    return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -1
                                                                                                        : 0;
}

int st_confine_all(const struct st_confine_bounds *b)
{
    go_first();
    bound_memory(b->memory);
    bound(RLIMIT_CPU, b->seconds);
    bound(RLIMIT_FSIZE, 0);
    bound(RLIMIT_CORE, 0);
    if (leave_root())
        return -1;
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming another user has undone it */
    bound(RLIMIT_NPROC, 0);
    if (drop_privileges())
        return -1;
    bound(RLIMIT_NOFILE, b->descriptors);
    return keep_calls();
}
