/* Stands for code that somebody else runs in the process that decodes, or in the child that reads the files
 * of a target (`confined`): the program is `decode`, but for decode_run(). With STALLTRAP_ATTACK=NAME it
 * tries one thing that this process must not be able to do and prints how that went; without, it lists what
 * there is. */
#include "base/confined.h"
#include "base/infile.h"
#include "decoder/cmd/decode_job.h"
#include "decoder/cmd/worker.h"
#include "decoder/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *target(void)
{
    return getenv("STALLTRAP_TARGET") ? getenv("STALLTRAP_TARGET") : "/etc/shadow";
}

static long read_shadow(void)
{
    return open("/etc/shadow", O_RDONLY);
}

static long read_given(void)
{
    return open(target(), O_RDONLY);
}

static long write_given(void)
{
    return open(target(), O_WRONLY | O_CREAT | O_APPEND, 0644);
}

static long write_raw(void)
{
    return syscall(SYS_open, target(), O_WRONLY | O_CREAT, 0644);
}

static long ask_for_given(void)
{
    return st_infile_open(target(), ST_INFILE_FILE);
}

static long ask_for_link(void)
{
    return st_infile_open("/proc/1/environ", ST_INFILE_FILE);
}

static long ask_for_device(void)
{
    return st_infile_open("/dev/null", ST_INFILE_INPUT);
}

static long ask_for_folder(void)
{
    return st_infile_open("/etc", ST_INFILE_FOLDER);
}

static long write_what_was_asked_for(void)
{
    int fd = st_infile_open("/bin/true", ST_INFILE_FILE);

    return fd < 0 ? -1 : write(fd, "x", 1);
}

static long remove_given(void)
{
    return unlink(target());
}

static long make_folder(void)
{
    return mkdir("/tmp/stalltrap-was-here", 0700);
}

static long make_link(void)
{
    return symlink("/etc/shadow", "/tmp/stalltrap-was-here");
}

static long internet(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long unix_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM, 0);
}

static long datagrams(void)
{
    int ends[2];

    return socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
}

static long netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long trace_parent(void)
{
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static long kill_parent(void)
{
    return kill(getppid(), 0);
}

static long signal_all(void)
{
    return kill(-1, 0);
}

static long signal_by_file(void)
{
    return fcntl(STDERR_FILENO, F_SETOWN, getppid());
}

static long read_parent(void)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)0x400000, 1};

    return process_vm_readv(getppid(), &to, 1, &from, 1, 0);
}

static long run_shell(void)
{
    char *argv[] = {"sh", "-c", "echo reached", NULL};

    return execv("/bin/sh", argv);
}

static long run_from_memory(void)
{
    char *argv[] = {"x", NULL};

    return syscall(SYS_execveat, memfd_create("x", 0), "", argv, argv, AT_EMPTY_PATH);
}

static long new_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                   MAP_FAILED
               ? -1
               : 0;
}

static long be_root(void)
{
    return setuid(0);
}

static long new_user_space(void)
{
    return unshare(CLONE_NEWUSER);
}

static long child_in_user_space(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

    if (child == 0)
        _exit(0);
    return child;
}

static long mount_something(void)
{
    return mount(target(), target(), NULL, MS_BIND, NULL);
}

static long leave_root(void)
{
    return chroot("/proc/1/root");
}

static long load_bpf(void)
{
    return syscall(SYS_bpf, 0, NULL, 0);
}

static long perf_event(void)
{
    return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static long io_uring(void)
{
    return syscall(SYS_io_uring_setup, 8, NULL);
}

static long old_system_call(void)
{
    long result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L /* getpid of 32-bit programs */) : "memory");
    return result;
}

static long no_more_filter(void)
{
    return signal(SIGSYS, SIG_IGN) == SIG_ERR ? -1 : 0;
}

static long type_for_the_user(void)
{
    return syscall(SYS_ioctl, STDERR_FILENO, 0x5412 /* TIOCSTI */, "x");
}

static long more_memory(void)
{
    size_t step = (size_t)64 << 20;
    char *at;

    for (size_t sum = 0; sum < (size_t)64 << 30; sum += step) {
        at = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            return -1;
    }
    return 0;
}

static long child_reads_shadow(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(open("/etc/shadow", O_RDONLY) >= 0 || st_infile_open("/etc/shadow", ST_INFILE_FILE) >= 0);
    errno = EACCES;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? -1 : 0;
}

/* Slowly, and then waits: whoever watches has time. */
static long use_memory(void)
{
    const size_t step = (size_t)16 << 20;

    for (size_t sum = 0; sum < (size_t)1 << 30; sum += step) {
        char *at = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at == MAP_FAILED)
            return -1;
        memset(at, 1, step);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    return 0;
}

/* What is done about it may take a moment: whoever is not ended by then has reached it. */
static long stay(void)
{
    nanosleep(&(struct timespec){.tv_sec = 600}, NULL);
    return 0;
}

static long many_spills(void)
{
    for (int i = 0; i < 64; i++)
        if (dec_ask(DEC_ASK_SPILL) < 0)
            return -1;
    return 0;
}

/* Each as large as one file may be. */
static long large_spills(void)
{
    static char block[1 << 16];
    struct rlimit most;

    getrlimit(RLIMIT_FSIZE, &most);
    for (int i = 0; i < 7; i++) {
        int fd = dec_ask(DEC_ASK_SPILL);

        if (fd < 0)
            return -1;
        for (rlim_t n = 0; n + sizeof(block) <= most.rlim_cur; n += sizeof(block))
            if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
                return -1;
    }
    return stay();
}

static long touch_memory(size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return -1;
    memset(at, 1, size);
    return 0;
}

/* A child has something to say all the time. */
static long memory_under_a_flood(void)
{
    enum { BEFORE = 1000, MESSAGES = 500000 };
    int ends[2], status;
    char byte;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    child = fork();
    for (int i = 0; child == 0 && i < MESSAGES; i++) {
        dec_tell("");
        if (i == BEFORE && write(ends[1], "", 1) != 1)
            _exit(1);
    }
    if (child == 0)
        _exit(0);
    if (child < 0 || read(ends[0], &byte, 1) != 1 || touch_memory((size_t)600 << 20))
        return -1;
    return waitpid(child, &status, 0) == child ? 0 : -1;
}

/* A process that is nobody's child any more. Its number. */
static pid_t orphan(size_t memory)
{
    int ends[2];
    pid_t child, number = -1;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    child = fork();
    if (child == 0) {
        child = fork();
        if (child)
            _exit(0);
        number = getpid();
        if (touch_memory(memory ? memory : 1) || write(ends[1], &number, sizeof(number)) != sizeof(number))
            _exit(1);
        stay();
        _exit(0);
    }
    close(ends[1]);
    if (child < 0 || waitpid(child, NULL, 0) != child ||
        read(ends[0], &number, sizeof(number)) != sizeof(number))
        number = -1;
    close(ends[0]);
    return number;
}

static long memory_of_orphans(void)
{
    for (int i = 0; i < 4; i++)
        if (orphan((size_t)150 << 20) < 0)
            return -1;
    return stay();
}

static long many_children(void)
{
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();

        if (child < 0)
            return -1;
        if (child == 0) {
            stay();
            _exit(0);
        }
    }
    return stay();
}

/* Whoever started this looks whether it is still there when `decode` has ended. */
static long child_that_stays(void)
{
    return orphan(0);
}

static long wait_to_be_looked_at(void)
{
    puts("here");
    fflush(stdout);
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return -1;
}

/* Escape sequences on all ways to the terminal. */
static long say(void)
{
    static const char text[] = "\033]0;owned\007\033[2J\x9b"
                               "31mplain\n\xe2\x80\xaewarning\n\033[K\xe2\x82";

    return write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ||
           write(STDERR_FILENO, text, sizeof(text) - 1) < 0;
}

static const struct attack {
    const char *name;

    long (*try)(void);
} attacks[] = {
    {"read-etc-shadow", read_shadow},
    {"read-a-file", read_given},
    {"write-a-file", write_given},
    {"write-by-old-call", write_raw},
    {"ask-for-a-private-file", ask_for_given},
    {"ask-for-environment-of-init", ask_for_link},
    {"ask-for-a-device", ask_for_device},
    {"ask-for-a-folder", ask_for_folder},
    {"write-to-an-input", write_what_was_asked_for},
    {"remove-a-file", remove_given},
    {"make-a-folder", make_folder},
    {"make-a-link", make_link},
    {"internet-socket", internet},
    {"unix-socket", unix_socket},
    {"datagram-pair", datagrams},
    {"netlink-socket", netlink},
    {"ptrace-parent", trace_parent},
    {"signal-parent", kill_parent},
    {"signal-all", signal_all},
    {"signal-by-descriptor", signal_by_file},
    {"read-parents-memory", read_parent},
    {"run-a-shell", run_shell},
    {"run-from-memory", run_from_memory},
    {"memory-that-is-code", new_code},
    {"become-root", be_root},
    {"new-user-namespace", new_user_space},
    {"child-in-user-namespace", child_in_user_space},
    {"mount", mount_something},
    {"chroot", leave_root},
    {"bpf", load_bpf},
    {"perf-event", perf_event},
    {"io-uring", io_uring},
    {"32-bit-system-call", old_system_call},
    {"ignore-the-filter", no_more_filter},
    {"type-in-the-terminal", type_for_the_user},
    {"64-GiB-of-memory", more_memory},
    {"child-reads-etc-shadow", child_reads_shadow},
    {"disk-by-many-spills", many_spills},
    {"disk-by-large-spills", large_spills},
    {"memory-under-a-flood", memory_under_a_flood},
    {"memory-of-orphans", memory_of_orphans},
    {"many-children", many_children},
    {"child-that-stays", child_that_stays},
};

int __wrap_decode_run(const struct decode_options *options, struct st_error *err);

int __wrap_decode_run(const struct decode_options *options, struct st_error *err)
{
    const char *name = getenv("STALLTRAP_ATTACK");
    long result;

    (void)options;
    (void)err;
    if (name && !strcmp(name, "wait"))
        return (int)wait_to_be_looked_at();
    if (name && !strcmp(name, "say")) {
        dec_tell("wrote \033]0;owned\007\n");
        return (int)say();
    }
    if (name && !strcmp(name, "use-memory"))
        return (int)use_memory();
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        if (!name)
            puts(attacks[i].name);
        if (!name || strcmp(name, attacks[i].name) != 0)
            continue;
        result = attacks[i].try();
        if (result < 0)
            printf("%s\n", strerror(errno));
        else
            printf("REACHED (%ld)\n", result);
    }
    return 0;
}

/* The question is the attack's name, the answer how that went. */
static ssize_t attack_confined(int fd, const void *question, size_t size, void *answer, size_t room)
{
    int n = 0;

    (void)fd;
    (void)size;
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
        if (!strcmp(question, attacks[i].name)) {
            long result = attacks[i].try();

            n = result < 0 ? snprintf(answer, room, "%s", strerror(errno))
                           : snprintf(answer, room, "REACHED (%ld)", result);
        }
    return n;
}

static int confined(const char *name)
{
    const struct st_confined_question q = {"do harm", attack_confined, -1, name, strlen(name) + 1};
    struct st_confined child = {0};
    struct st_error err = {0};
    char answer[256];
    ssize_t n = st_confined_ask(&child, &q, answer, sizeof(answer), &err);

    st_confined_close(&child);
    if (n < 0)
        printf("%.*s\n", (int)strcspn(err.text, "\n"), err.text);
    else
        printf("%.*s\n", (int)n, answer);
    return n < 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "confined"))
        return argc == 3 ? confined(argv[2]) : 2;
    return (strcmp(argv[1], "decode-worker") ? st_cmd_decode : st_cmd_decode_worker)(argc - 1, argv + 1);
}
