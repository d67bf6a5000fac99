/* Landlock, landlock(7), and filters of system calls, seccomp(2). */
#include "base/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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
#define IF_ANY_BIT(value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value, yes, no)

/* "Where it is this call, allow it." Returns the number of instructions. */
static size_t put_call(struct sock_filter *to, int call)
{
    size_t n = 0;

    if (call != SYS_mmap && call != SYS_mprotect) {
        to[n++] = IF_EQUAL((uint32_t)call, 0, 1);
        to[n++] = RETURN(SECCOMP_RET_ALLOW);
        return n;
    }
    to[n++] = IF_EQUAL((uint32_t)call, 0, 4);
    to[n++] = LOAD(args[2]);
    to[n++] = IF_ANY_BIT(PROT_EXEC, 0, 1);
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
