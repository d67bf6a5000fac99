/* `stalltrap snap`: asks a running arm for a snapshot. */
#include "base/log.h"
#include "base/opt.h"
#include "base/safetext.h"
#include "base/units.h"
#include "base/vec.h"
#include "recorder/commands.h"
#include "recorder/control.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* An arm that answered "who". */
struct found {
    char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];

    char pids[512]; /* "ARM TARGET..." */
};

struct search {
    long pid; /* 0: any */

    ST_VEC(struct found) arms;
};

/* Connects; -1 with errno where nobody listens, or somebody who is neither us nor root (unless we are root).
 */
static int dial(const char *socket_path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ||
        (geteuid() != 0 && peer.uid != 0 && peer.uid != geteuid())) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends a line and reads the answer until the other side hangs up. 0, or -1 with errno. */
static int converse(int fd, const char *request, char *answer, size_t size)
{
    size_t used = 0;
    ssize_t n = 0;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        return -1;
    while (used < size - 1) {
        n = recv(fd, answer + used, size - 1 - used, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    answer[used] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    return n < 0 || !used ? -1 : 0;
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

static int ask_who(struct search *s, struct found *f)
{
    struct timeval patience = {.tv_sec = 2};
    int fd = dial(f->socket);
    bool ok;

    if (fd < 0)
        return 0; /* left by one that was killed, or somebody else's */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ok = !converse(fd, "who\n", f->pids, sizeof(f->pids));
    close(fd);
    if (!ok || (s->pid && !names_pid(f->pids, s->pid)))
        return 0;
    return st_vec_push(&s->arms, *f);
}

static int search_folder(void *ctx, const char *folder)
{
    struct search *s = ctx;
    struct found f;
    DIR *d = opendir(folder);
    struct dirent *e;
    int rc = 0;

    if (!d)
        return 0;
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

static int ask_for_snapshot(const struct found *f, struct st_error *err)
{
    char answer[PATH_MAX + 1024];
    char safe[4 * PATH_MAX];
    int fd = dial(f->socket);
    int rc = 0;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot reach the recording (%s)", f->socket);
    if (converse(fd, "snap\n", answer, sizeof(answer)))
        rc = st_fail(err, ST_EFAIL, "the recording ended without an answer (%s)", f->socket);
    else if (strncmp(answer, "wrote ", 6) != 0)
        rc = st_fail(err, ST_EFAIL, "%s", strncmp(answer, "error ", 6) ? answer : answer + 6);
    close(fd);
    if (rc)
        return rc;
    st_safe_text(safe, sizeof(safe), answer);
    puts(safe);
    return 0;
}

static int snap(long pid, struct st_error *err)
{
    struct search s = {.pid = pid};
    int rc = 0;

    if (rec_control_folders(search_folder, &s))
        rc = st_nomem(err, "the list of recordings");
    else if (s.arms.n == 0)
        rc = explain_none(&s, err);
    else if (s.arms.n > 1)
        rc = explain_many(&s, err);
    else
        rc = ask_for_snapshot(&s.arms.at[0], err);
    st_vec_free(&s.arms);
    return rc;
}

int st_cmd_snap(int argc, char **argv)
{
    static const struct st_opt_usage usage = {
        .command = "snap",
        .synopsis = "[PID]",
        .about = "Asks a running `stalltrap arm` for a snapshot now, and prints the file's name when it is "
                 "written.\n"
                 "PID is the pid of the arm or of a process it records; it may be left out when only one arm "
                 "runs.",
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
