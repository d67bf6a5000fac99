/* The process that was started: opens, watches, names. Nothing that it reads comes from a file. */
#include "decoder/cmd/worker.h"

#include "base/folder.h"
#include "base/log.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "base/safetext.h"
#include "base/tempfiles.h"
#include "decoder/cmd/given.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 100 /* at what the worker takes */ };

struct service {
    const struct decode_options *options;

    struct st_outfile out; /* fd -1: no database is wanted */

    struct dec_usage usage;

    enum dec_excess excess; /* for which the worker was ended */

    int socket, ended; /* `ended`: a pidfd */

    int input; /* a folder that was named as the input; -1: none */

    int code; /* the snapshot's folder of code; -1: none */

    char code_folder[PATH_MAX];

    char line[PATH_MAX]; /* to print in the end */

    struct dec_says says;

    int denied; /* the system call that ended the worker; -1: none */
};

static volatile sig_atomic_t asked_to_end;

static void note_signal(int number)
{
    asked_to_end = number;
}

/* ---- which files ---- */

/* The part of `path` below `folder`, or NULL. */
static const char *below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (strncmp(path, folder, n) != 0 || path[n] != '/')
        return NULL;
    while (path[n] == '/')
        n++;
    return path + n;
}

/* Beside the input. */
static bool was_named(const struct decode_options *o, const char *path)
{
    for (size_t i = 0; i < o->raw.traces.n; i++)
        if (!strcmp(o->raw.traces.at[i], path))
            return true;
    for (size_t i = 0; i < o->raw.images.n; i++)
        if (!strcmp(o->raw.images.at[i].file, path))
            return true;
    return o->raw.list && !strcmp(o->raw.list, path);
}

/* A program, a library, an object or debug file: but not the memory of a process or of the kernel, which has
 * the same format. */
static bool is_program(int fd)
{
    Elf64_Ehdr head; /* up to e_type as that of 32 bits */
    const ssize_t known = offsetof(Elf64_Ehdr, e_machine);

    return pread(fd, &head, (size_t)known, 0) == known && !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
           (head.e_type == ET_EXEC || head.e_type == ET_DYN || head.e_type == ET_REL);
}

/* Recordings name files. Only what everybody may read or what is a program is opened, and nothing of /proc:
 * who runs this may be able to read all files, and his own are nobody else's in any case. */
static bool is_for_all(int fd)
{
    struct statfs system;
    struct stat st;

    if (fstat(fd, &st) || fstatfs(fd, &system) || system.f_type == PROC_SUPER_MAGIC)
        return false;
    return st.st_mode & S_IROTH || is_program(fd);
}

static int open_other(const char *path, enum st_infile_kind kind)
{
    int fd = kind == ST_INFILE_FILE ? st_infile_open(path, kind) : -1;

    if (kind != ST_INFILE_FILE)
        errno = EACCES;
    if (fd < 0 || is_for_all(fd))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}

static int open_asked(const struct service *s, const struct dec_request *request)
{
    const char *rest;

    if (s->options->input && !strcmp(s->options->input, request->path))
        return dec_given_input(s->options, request->kind);
    /* The names that the decoder has for the running kernel. */
    if (was_named(s->options, request->path) || !strcmp(request->path, "/proc/kallsyms"))
        return st_infile_open(request->path, request->kind);
    if (s->input >= 0 && (rest = below(request->path, s->options->input)))
        return st_infile_open_below(s->input, rest, request->kind);
    if (s->code >= 0 && (rest = below(request->path, s->code_folder)))
        return st_infile_open_below(s->code, rest, request->kind);
    return open_other(request->path, request->kind);
}

/* ---- requests ---- */

static void answer(int to, int fd, int error)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct dec_reply reply = {.error = fd < 0 ? error : 0};
    struct iovec bytes = {&reply, sizeof(reply)};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    struct cmsghdr *head;

    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    }
    if (sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* then nobody waits for it */
}

static int copy_of(int fd)
{
    errno = EBADF;
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* A listing has no folder of its own. */
static int spill_of_listing(void)
{
    int folder = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = folder < 0 ? -1 : st_folder_create_nameless(folder);

    if (folder >= 0)
        close(folder);
    return fd;
}

static int open_spill(struct service *s)
{
    int fd = -1, error = EDQUOT;

    if (s->usage.nfiles < DEC_MOST_FILES)
        fd = s->out.fd < 0 ? spill_of_listing() : st_folder_create_nameless(s->out.folder);
    if (fd >= 0 && !dec_usage_file(&s->usage, fd))
        return fd;
    error = fd >= 0 || s->usage.nfiles < DEC_MOST_FILES ? errno : error;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static int find(struct service *s, const struct dec_request *request)
{
    if (request->what == DEC_ASK_FILE)
        return open_asked(s, request);
    if (request->what == DEC_ASK_OUT)
        return copy_of(s->out.fd);
    return open_spill(s);
}

static void serve(struct service *s, const struct dec_request *request, int to)
{
    int fd;

    if (request->what == DEC_TELL) {
        snprintf(s->line, sizeof(s->line), "%s", request->path);
    } else if (request->what == DEC_DENIED) {
        s->denied = request->number;
    } else if (to >= 0 && request->what <= DEC_ASK_SPILL && request->kind <= ST_INFILE_INPUT) {
        fd = find(s, request);
        answer(to, fd, errno);
        if (fd >= 0)
            close(fd);
    }
}

/* Takes one request. False: there is none. */
static bool take(struct service *s)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct dec_request request;
    struct iovec bytes = {&request, sizeof(request)};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(s->socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int to = -1;

    if (n <= 0)
        return false;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&to, CMSG_DATA(head), sizeof(to));
    if ((size_t)n > offsetof(struct dec_request, path) && !((char *)&request)[n - 1])
        serve(s, &request, to);
    if (to >= 0)
        close(to);
    return true;
}

/* ---- the worker's life ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* By the clock, however much the worker has to say: what it takes, and whether a signal waits, which ppoll
 * lets through only where no descriptor is ready. */
static void look(struct service *s, const sigset_t *waiting)
{
    ppoll(NULL, 0, &(struct timespec){0}, waiting);
    if (s->excess == DEC_WITHIN)
        s->excess = dec_usage_look(&s->usage);
    if (s->excess != DEC_WITHIN)
        dec_usage_kill(&s->usage);
}

/* Serves until the worker has ended, or this process is asked to. */
static void watch(struct service *s, const sigset_t *waiting)
{
    struct pollfd fds[] = {{.fd = s->ended, .events = POLLIN},
                           {.fd = s->socket, .events = POLLIN},
                           {.fd = s->says.fd, .events = POLLIN}};
    int64_t next = now_ms() + LOOK_MS;

    while (!asked_to_end && !(fds[0].revents & POLLIN)) {
        int64_t left = next - now_ms();
        const struct timespec wait = {.tv_nsec = left > 0 ? left * 1000000 : 0};
        int n = ppoll(fds, 3, &wait, waiting);

        if (n > 0 && fds[1].revents & POLLIN)
            take(s);
        else if (n > 0 && fds[1].revents)
            fds[1].fd = -1; /* the worker ends */
        if (n > 0 && fds[2].revents && !dec_says_print(&s->says, false))
            fds[2].fd = -1;
        if (now_ms() < next)
            continue;
        look(s, waiting);
        next = now_ms() + LOOK_MS;
    }
    if (asked_to_end)
        dec_usage_kill(&s->usage);
}

/* Whatever the worker has started ends with it. */
static int wait_for(struct service *s)
{
    siginfo_t info;
    int status = 0;

    while (waitid(P_PID, (id_t)s->usage.worker, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    dec_usage_kill(&s->usage);
    while (waitpid(s->usage.worker, &status, 0) < 0 && errno == EINTR)
        ;
    while (take(s))
        ;
    dec_says_print(&s->says, true);
    return status;
}

/* The worker draws its progress where our stderr is a terminal (base/progress.h). */
static char on_terminal[] = ST_PROGRESS_TERMINAL "=1";

static const char *const kept[] = {
    "HOME=", "LANG=",         "LC_ALL=",       "LC_CTYPE=",      "COLUMNS=",        "STALLTRAP_",
    "TERM=", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "LD_LIBRARY_PATH="};

/* What of the environment the worker needs. */
static void choose_environment(char **to, size_t most)
{
    size_t n = 0;

    if (isatty(STDERR_FILENO))
        to[n++] = on_terminal;
    for (char **e = environ; *e && n + 1 < most; e++)
        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            if (!strncmp(*e, kept[i], strlen(kept[i])) && strncmp(*e, on_terminal, sizeof(on_terminal) - 2)) {
                to[n++] = *e;
                break;
            }
    to[n] = NULL;
}

/* Does not return. */
static __attribute__((noreturn)) void be_worker(const struct service *s, int socket, int says, char **argv)
{
    char *words[4096] = {"stalltrap", "decode-worker"}, *environment[64];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    size_t n = 2;

    for (char **a = argv + 1; *a && n + 1 < sizeof(words) / sizeof(words[0]); a++)
        words[n++] = *a;
    choose_environment(environment, sizeof(environment) / sizeof(environment[0]));
    dec_limit(s->options, s->usage.disk);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN); /* it is in the background of its terminal from now on, and may write there */
    socket = fcntl(socket, F_DUPFD, DEC_WORKER_FD + 1);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (null >= 0 && s->options->listing == DECODE_NO_LISTING && !s->options->stats)
        dup2(null, STDOUT_FILENO);
    dup2(says, STDERR_FILENO);
    dup2(socket, DEC_WORKER_FD);
    syscall(SYS_close_range, DEC_WORKER_FD + 1, ~0U, 0);
    execve("/proc/self/exe", words, environment);
    fprintf(stderr, "stalltrap decode: cannot start itself again to decode: %s\n", strerror(errno));
    _exit(1);
}

static int start(struct service *s, char **argv, const sigset_t *before, struct st_error *err)
{
    int ends[2], says;
    pid_t worker;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return st_fail_errno(err, ST_EFAIL, "cannot make a socket");
    s->socket = ends[0];
    says = dec_says_open(&s->says, err);
    if (says < 0) {
        close(ends[1]);
        return says;
    }
    worker = fork();
    if (worker == 0) {
        sigprocmask(SIG_SETMASK, before, NULL);
        be_worker(s, ends[1], says, argv);
    }
    close(ends[1]);
    close(says);
    if (worker < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot start the process that decodes");
    dec_usage_begin(&s->usage, worker);
    s->ended = (int)syscall(SYS_pidfd_open, worker, 0);
    if (s->ended >= 0)
        return 0;
    st_fail_errno(err, ST_EFAIL, "cannot watch the process that decodes (pidfd_open)");
    dec_usage_kill(&s->usage);
    wait_for(s);
    return ST_EFAIL;
}

/* That the worker took more than it may. */
static int explain_excess(const struct service *s, const char *what, struct st_error *err)
{
    if (s->excess == DEC_TOO_MUCH_MEMORY) {
        st_fail(err, ST_EFAIL, "%s: decoding it takes more than %llu MiB of memory", what,
                (unsigned long long)(s->usage.memory >> 20));
        return st_hint(err, "--memory SIZE allows more");
    }
    if (s->excess == DEC_TOO_MUCH_DISK) {
        st_fail(err, ST_EFAIL, "%s: decoding it takes more than %llu MiB of disk", what,
                (unsigned long long)(s->usage.disk >> 20));
        return st_hint(err, "-o NAME puts the database on another disk");
    }
    st_fail(
        err, ST_EFAIL,
        "%s: the process that decodes it was ended: it started more than %d others, which decoding does not "
        "need",
        what, DEC_MOST_PROCESSES);
    return st_hint(err, "the file may be made to do harm: it had no access to anything");
}

/* Why there is no result; 0: there is one, or the worker said why itself. */
static int explain(const struct service *s, int status, struct st_error *err)
{
    const char *what = s->options->input ? s->options->input : s->options->raw.traces.at[0];
    char *call;

    if (s->excess != DEC_WITHIN)
        return explain_excess(s, what, err);
    if (s->denied >= 0) {
        call = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, s->denied);
        st_fail(err, ST_EFAIL,
                "%s: the process that decodes it was ended: it made the system call %s (%d), which decoding "
                "does not need",
                what, call ? call : "?", s->denied);
        free(call);
        return st_hint(err, "the file may be made to do harm: it had no access to anything");
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return st_fail(err, ST_EFAIL,
                       "%s: decoding it takes more processor time than any file of its size needs", what);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) {
        st_fail(
            err, ST_EFAIL,
            "%s: a file became shorter while it was read (this one, or one of the code in it), or its disk "
            "failed",
            what);
        return st_hint(err, "decode it again when nothing writes to it");
    }
    if (WIFSIGNALED(status))
        return st_fail(err, ST_EFAIL, "%s: the process that decodes it was ended by signal %d (%s)", what,
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 0;
}

static void print_line(const struct service *s)
{
    char safe[4 * sizeof(s->line)];

    if (!s->line[0])
        return;
    st_safe_lines(safe, sizeof(safe), s->line);
    fputs(safe, s->options->stats ? stderr : stdout);
}

/* 0 or a code with the reason; > 0: the worker's exit status, which has said why. */
static int finish(struct service *s, int status, struct st_error *err)
{
    int rc = explain(s, status, err);

    if (!rc && WEXITSTATUS(status))
        rc = WEXITSTATUS(status);
    if (!rc && s->out.fd >= 0)
        rc = st_outfile_commit(&s->out, s->options->replace, err);
    if (!rc)
        print_line(s);
    return rc;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

/* From now on a signal that ends a process is only noted, while ppoll waits: the file that was begun has to
 * go first. */
static void take_signals(sigset_t *before)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t blocked;

    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct sigaction was;

        if (sigaction(ends[i], NULL, &was) || was.sa_handler == SIG_IGN)
            continue;
        sigaction(ends[i], &action, NULL);
        sigaddset(&blocked, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, before);
}

/* Nobody waits in ppoll any more, and to bring a file to a slow disk takes as long as it takes: a signal
 * removes what was begun and ends the process where it is. */
static void leave_signals(const sigset_t *before)
{
    struct sigaction now;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (!sigaction(ends[i], NULL, &now) && now.sa_handler == note_signal)
            signal(ends[i], SIG_DFL);
    st_tempfile_catch();
    sigprocmask(SIG_SETMASK, before, NULL);
}

static int run(struct service *s, char **argv, const sigset_t *before, struct st_error *err)
{
    int rc = s->options->output ? dec_given_output(s->options, &s->out, err) : 0;

    if (rc)
        return rc;
    s->usage.disk = dec_usage_disk(s->options, s->out.fd);
    s->usage.memory = dec_memory(s->options);
    if (s->out.fd >= 0 && dec_usage_file(&s->usage, s->out.fd))
        return st_fail_errno(err, ST_EFAIL, "cannot watch how large '%s' gets", s->options->output);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    s->input = s->options->input ? dec_given_input(s->options, ST_INFILE_FOLDER) : -1;
    s->code = dec_given_code(s->options, s->code_folder);
    fflush(NULL);
    rc = start(s, argv, before, err);
    if (rc)
        return rc;
    watch(s, before);
    rc = wait_for(s);
    /* Whoever read the worker's output has enough of it (decode --dump | head): this process wrote it. */
    if (WIFSIGNALED(rc) && WTERMSIG(rc) == SIGPIPE)
        asked_to_end = SIGPIPE;
    if (asked_to_end)
        return 0;
    leave_signals(before);
    return finish(s, rc, err);
}

int dec_serve(const struct decode_options *options, char **argv)
{
    struct service s = {.options = options,
                        .socket = -1,
                        .ended = -1,
                        .input = -1,
                        .code = -1,
                        .denied = -1,
                        .out.fd = -1,
                        .says.fd = -1};
    struct st_error err = {0};
    sigset_t before;
    int rc;

    take_signals(&before);
    rc = run(&s, argv, &before, &err);
    dec_says_close(&s.says);
    dec_usage_end(&s.usage);
    st_outfile_abort(&s.out);
    if (asked_to_end) {
        signal(asked_to_end, SIG_DFL);
        raise(asked_to_end);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (int i = 0; i < 4; i++) {
        const int fds[] = {s.socket, s.ended, s.input, s.code};

        if (fds[i] >= 0)
            close(fds[i]);
    }
    return rc < 0 ? st_log_error("decode", &err) : rc;
}
