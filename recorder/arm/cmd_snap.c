/* `stalltrap snap`: asks a running arm for a snapshot. */
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/safetext.h"
#include "base/units.h"
#include "base/vec.h"
#include "recorder/arm/control.h"
#include "recorder/commands.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    MOST_PIDS = 64 * 1024, /* bytes of the answer to "who" */
    WHO_MS = 2000,         /* for that answer */
    SNAP_MS = 300 * 1000   /* for a snapshot: actions may come before it */
};

/* An arm that answered "who". */
struct found {
    char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];

    char *pids; /* "ARM TARGET..." */
};

struct search {
    long pid; /* 0: any */

    uid_t owner; /* of process `pid`, else our own: whose arms are asked, beside root's */

    ST_VEC(struct found) arms;
};

static long long now_ms(void)
{
    return (long long)(st_mono_ns() / 1000000);
}

enum { NOBODY = -1, NO_SOCKET = -2 };

/* Connects; NOBODY with errno where nobody listens, or somebody who is neither root nor `owner`: anybody may
 * put a socket where ours are looked for, and say what he likes. NO_SOCKET with errno: it could not be tried.
 * *pid is who listens. */
static int dial(const char *socket_path, uid_t owner, pid_t *pid)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
    if (fd < 0)
        return NO_SOCKET;
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || (peer.uid != 0 && peer.uid != owner)) {
        close(fd);
        return NOBODY;
    }
    *pid = peer.pid;
    return fd;
}

/* Sends a line and reads the answer until the other side hangs up, for so long at most. 0, or -1 with errno.
 */
static int converse(int fd, const char *request, char *answer, size_t size, long long patience)
{
    struct pollfd there = {.fd = fd, .events = POLLIN};
    long long until = now_ms() + patience, left = patience;
    size_t used = 0;
    ssize_t n = -1;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        return -1;
    while (used < size - 1 && (left = until - now_ms()) > 0) {
        if (poll(&there, 1, (int)left) <= 0)
            continue;
        n = recv(fd, answer + used, size - 1 - used, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    if (left <= 0)
        errno = ETIMEDOUT;
    answer[used] = '\0';
    if (n || !strchr(answer, '\n')) /* what has no end may be a part */
        return -1;
    answer[strcspn(answer, "\n")] = '\0';
    return 0;
}

static bool names_pid(const char *pids, long pid)
{
    while (*pids) {
        char *end;

        if (strtol(pids, &end, 10) == pid)
            return true;
        if (end == pids)
            return false;
        pids = end;
    }
    return false;
}

/* -1 with errno: it could not be asked. */
static int ask_who(struct search *s, struct found *f)
{
    pid_t listener;
    int fd = dial(f->socket, s->owner, &listener);
    bool ok;

    if (fd == NO_SOCKET)
        return -1;
    if (fd < 0)
        return 0; /* left by one that was killed, or somebody else's */
    f->pids = calloc(1, MOST_PIDS);
    if (!f->pids) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    ok = !converse(fd, "who\n", f->pids, MOST_PIDS, WHO_MS) && strtol(f->pids, NULL, 10) == listener &&
         (!s->pid || names_pid(f->pids, s->pid));
    close(fd);
    if (ok && !st_vec_push(&s->arms, *f))
        return 0;
    free(f->pids);
    errno = ENOMEM;
    return ok ? -1 : 0;
}

static int search_folder(void *ctx, const char *folder)
{
    struct search *s = ctx;
    struct found f;
    DIR *d = opendir(folder);
    struct dirent *e;
    int rc = 0;

    if (!d)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -1 : 0;
    while (!rc && (e = readdir(d))) {
        size_t len = strlen(e->d_name);
        int n = snprintf(f.socket, sizeof(f.socket), "%s/%s", folder, e->d_name);

        if (len > 5 && !strcmp(e->d_name + len - 5, ".sock") && n > 0 && (size_t)n < sizeof(f.socket))
            rc = ask_who(s, &f);
    }
    closedir(d);
    return rc;
}

static int explain_none(const struct search *s, struct st_error *err)
{
    if (s->pid)
        return st_fail(err, ST_EFAIL,
                       "no running `stalltrap arm` of yours has pid %ld or records process %ld", s->pid,
                       s->pid);
    return st_fail(err, ST_EFAIL, "no `stalltrap arm` of yours is running");
}

static int explain_many(const struct search *s, struct st_error *err)
{
    int rc = st_fail(err, ST_EUSAGE, "%zu recordings are running: say which (stalltrap snap PID)", s->arms.n);

    for (size_t i = 0; i < s->arms.n; i++) {
        const char *pids = s->arms.at[i].pids;
        const char *space = strchr(pids, ' ');

        st_hint(err, "%.*s%s%s", space ? (int)(space - pids) : (int)strlen(pids), pids,
                space ? " records process" : "", space ? space : "");
    }
    return rc;
}

static int ask_for_snapshot(const struct found *f, uid_t owner, struct st_error *err)
{
    char answer[PATH_MAX + 1024];
    char safe[4 * sizeof(answer)];
    pid_t listener;
    int fd = dial(f->socket, owner, &listener);
    int rc = 0;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot reach the recording (%s)", f->socket);
    if (converse(fd, "snap\n", answer, sizeof(answer), SNAP_MS))
        rc = st_fail(err, ST_EFAIL, "the recording %s (%s)",
                     errno == ETIMEDOUT ? "has not answered in time" : "ended without an answer", f->socket);
    else if (strncmp(answer, "wrote ", 6) != 0)
        rc = st_fail(err, ST_EFAIL, "%s", strncmp(answer, "error ", 6) ? answer : answer + 6);
    close(fd);
    if (rc)
        return rc;
    st_safe_text(safe, sizeof(safe), answer);
    puts(safe);
    return 0;
}

/* Root may ask an arm of the user whose process it names. */
static uid_t owner_of(long pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%ld", pid);
    return geteuid() == 0 && pid && !stat(path, &st) ? st.st_uid : geteuid();
}

static int snap(long pid, struct st_error *err)
{
    struct search s = {.pid = pid, .owner = owner_of(pid)};
    int rc = 0;

    if (rec_control_folders(search_folder, &s))
        rc = st_fail_errno(err, ST_EFAIL, "cannot look for recordings");
    else if (s.arms.n == 0)
        rc = explain_none(&s, err);
    else if (s.arms.n > 1)
        rc = explain_many(&s, err);
    else
        rc = ask_for_snapshot(&s.arms.at[0], s.owner, err);
    for (size_t i = 0; i < s.arms.n; i++)
        free(s.arms.at[i].pids);
    st_vec_free(&s.arms);
    return rc;
}

/* The sockets of the folder bear the pids of the arms. */
static int complete_in(void *ctx, const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char pid[16];

        if (sscanf(e->d_name, "%15[0-9].sock", pid) == 1)
            st_complete_word(ctx, pid, "stalltrap arm");
    }
    if (d)
        closedir(d);
    return 0;
}

static void complete_arms(struct st_completion *c)
{
    if (!c->operand)
        rec_control_folders(complete_in, c);
}

int st_cmd_snap(int argc, char **argv)
{
    static const struct st_completer completers[] = {{NULL, complete_arms}, {NULL, NULL}};
    static const struct st_opt_usage usage = {
        .command = "snap",
        .synopsis = "[PID]",
        .about = "Asks a running `stalltrap arm` for a snapshot now, and prints the file's name when it is "
                 "written.\n"
                 "PID is the pid of the arm or of a process it records; it may be left out when only one arm "
                 "runs.",
        .completers = completers,
    };
    static const struct st_option table[] = {{0}};
    struct st_error err = {0};
    long pid = 0;
    int first = st_opt_parse(&usage, table, argc, argv, false, &err);
    int rc = first < 0 ? first : 0;

    if (first == 0)
        return 0;
    if (!rc && argc - first > 1)
        rc = st_fail(&err, ST_EUSAGE, "one PID only: '%s' is too much", argv[first + 1]);
    if (!rc && argc - first == 1)
        rc = st_parse_number("PID", argv[first], 1, INT_MAX, &pid, &err);
    if (!rc)
        rc = snap(pid, &err);
    return rc ? st_log_error("snap", &err) : 0;
}
