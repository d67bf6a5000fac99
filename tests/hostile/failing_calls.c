/* Runs a command in which one system call of a kind fails: the Nth of the command and all that it starts.
 *
 *   failing_calls REPORT KIND N SECONDS COMMAND...
 *
 * KIND: open, write, mmap, fork, perf, bpf. What is written to descriptor 2 is let through and not counted:
 * the message must have a way. N is 0: none fails. Its status is the command's (128 + number for a signal).
 * REPORT gets lines: "calls COUNT", "failed WHAT", and "hangs" where the command, or "stays" where something
 * that it started, was still there after SECONDS, and was killed. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CALLS = 5 };

static const struct kind {
    const char *name;

    int error;

    int path; /* the argument that is one, -1: none is */

    int n;

    int calls[MOST_CALLS];
} kinds[] = {
    {"open", EMFILE, 1, 3, {SYS_openat, SYS_open, SYS_openat2}},
    {"write", ENOSPC, -1, 5, {SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2}},
    {"mmap", ENOMEM, -1, 1, {SYS_mmap}},
    {"fork", EAGAIN, -1, 4, {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork}},
    {"perf", EMFILE, -1, 1, {SYS_perf_event_open}},
    {"bpf", ENOMEM, -1, 1, {SYS_bpf}},
};

static FILE *report;

static void die(const char *what)
{
    fprintf(stderr, "failing_calls: %s: %s\n", what, strerror(errno));
    exit(125);
}

/* A filter that asks about the calls of the kind; the descriptor that is asked. */
static int ask_about(const struct kind *kind)
{
    struct sock_filter code[MOST_CALLS * 4 + 5];
    struct sock_fprog program = {0, code};
    int n = 0;

    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < kind->n; i++) {
        bool writes = !strcmp(kind->name, "write");

        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)kind->calls[i], 0,
                                                 writes ? 3 : 1);
        if (writes) {
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                     offsetof(struct seccomp_data, args[0]));
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2,
                                                     (unsigned char)(3 + (kind->n - 1 - i) * 4 - 2), 0);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)n;
    if (geteuid() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        die("no_new_privs");
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
}

static void pass(int by, int fd)
{
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
    if (sendmsg(by, &m, 0) != 1)
        die("sendmsg");
}

static int passed(int by)
{
    char room[CMSG_SPACE(sizeof(int))], byte;
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    int fd;

    if (recvmsg(by, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
        exit(125);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
    return fd;
}

static pid_t begin(const struct kind *kind, char **command, int *listener)
{
    int pair[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        die("socketpair");
    child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        int fd;

        setpgid(0, 0);
        fd = ask_about(kind);
        if (fd < 0)
            die("seccomp");
        pass(pair[1], fd);
        close(fd);
        execvp(command[0], command);
        die(command[0]);
    }
    close(pair[1]);
    *listener = passed(pair[0]);
    close(pair[0]);
    return child;
}

/* The file whose code made the call: the dynamic linker's failures are not ours. */
static void find_caller(pid_t pid, uint64_t address, char file[256])
{
    char name[64], line[512];
    FILE *f;

    file[0] = '\0';
    snprintf(name, sizeof(name), "/proc/%d/maps", pid);
    f = fopen(name, "re");
    while (f && fgets(line, sizeof(line), f)) {
        unsigned long long from, to;

        if (sscanf(line, "%llx-%llx", &from, &to) == 2 && address >= from && address < to)
            sscanf(line, "%*s %*s %*s %*s %*s %255s", file);
    }
    if (f)
        fclose(f);
}

static void tell(const struct kind *kind, const struct seccomp_notif *asked, long nth)
{
    char file[64], comm[32] = "", path[256] = "", caller[256];
    FILE *f;

    snprintf(file, sizeof(file), "/proc/%u/comm", asked->pid);
    f = fopen(file, "r");
    if (f) {
        if (fgets(comm, sizeof(comm), f))
            comm[strcspn(comm, "\n")] = '\0';
        fclose(f);
    }
    if (kind->path >= 0) {
        struct iovec to = {path, sizeof(path) - 1};
        uint64_t at = asked->data.args[asked->data.nr == SYS_open ? 0 : 1];
        struct iovec from = {(void *)(uintptr_t)at,
                             4096 - at % 4096 < sizeof(path) - 1 ? 4096 - at % 4096 : sizeof(path) - 1};

        if (process_vm_readv((pid_t)asked->pid, &to, 1, &from, 1, 0) < 0)
            path[0] = '\0';
    }
    find_caller((pid_t)asked->pid, asked->data.instruction_pointer, caller);
    fprintf(report, "failed %ld: %s %s of %s, by %s\n", nth, kind->name, path, comm, caller);
}

static void answer(const struct kind *kind, int listener, long at, long *count)
{
    struct seccomp_notif asked = {0};
    struct seccomp_notif_resp answer = {0};

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
        return;
    ++*count;
    answer.id = asked.id;
    if (*count == at) {
        tell(kind, &asked, *count);
        answer.error = -kind->error;
    } else {
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Until nothing is left that the filter binds. */
static int serve(const struct kind *kind, int listener, pid_t child, long at, double seconds)
{
    double end = now() + seconds;
    long count = 0;
    int status = -1;
    bool reaped = false;

    for (;;) {
        struct pollfd p = {listener, POLLIN, 0};

        poll(&p, 1, reaped ? 20 : 50);
        if (p.revents & POLLIN)
            answer(kind, listener, at, &count);
        else if (p.revents & POLLHUP)
            break;
        if (!reaped && waitpid(child, &status, WNOHANG) == child) {
            reaped = true;
            end = now() + seconds;
        }
        if (now() > end) {
            fputs(reaped ? "stays\n" : "hangs\n", report);
            kill(-child, SIGKILL);
            break;
        }
    }
    fprintf(report, "calls %ld\n", count);
    if (!reaped)
        waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    int listener, status;
    pid_t child;

    if (argc < 6 || !(report = fopen(argv[1], "we")))
        return 125;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, argv[2]) != 0)
            continue;
        child = begin(&kinds[i], argv + 5, &listener);
        status = serve(&kinds[i], listener, child, atol(argv[3]), atof(argv[4]));
        fclose(report);
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return 125;
}
