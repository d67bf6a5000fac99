/* Targets: from the command line to process ids. */
#include "base/target.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int take_kind(struct st_target *t, enum st_target_kind kind, struct st_error *err)
{
    if (t->kind != ST_TARGET_NONE && t->kind != kind)
        return st_fail(err, ST_EUSAGE, "one target only: -p, --comm, --cgroup, -a, or -- COMMAND");
    t->kind = kind;
    return 0;
}

static int push_pid(struct st_target *t, pid_t pid, struct st_error *err)
{
    pid_t *grown;

    for (size_t i = 0; i < t->npids; i++)
        if (t->pids[i] == pid)
            return 0;
    grown = reallocarray(t->pids, t->npids + 1, sizeof(*grown));
    if (!grown)
        return st_nomem(err, "the list of processes");
    t->pids = grown;
    t->pids[t->npids++] = pid;
    return 0;
}

int st_target_add_pids(void *to, const char *text, struct st_error *err)
{
    static const char blanks[] = " \t\n";
    struct st_target *t = to;
    int rc = take_kind(t, ST_TARGET_PIDS, err);

    do {
        size_t len;
        char one[16];
        long pid;

        text += strspn(text, blanks);
        len = strcspn(text, ", \t\n");
        snprintf(one, sizeof(one), "%.*s", (int)len, text);
        if (!rc)
            rc = st_parse_number("-p", one, 1, INT_MAX, &pid, err);
        if (!rc)
            rc = push_pid(t, (pid_t)pid, err);
        text += len;
        text += strspn(text, blanks);
        text += *text == ',';
    } while (!rc && *text);
    return rc;
}

int st_target_more_pids(struct st_target *t, int argc, char **argv, int first, struct st_error *err)
{
    for (; first < argc; first++) {
        const char *word = argv[first];
        int rc;

        if (t->kind != ST_TARGET_PIDS || !*word || word[strspn(word, "0123456789,")]) {
            st_fail(err, ST_EUSAGE, "unexpected argument '%s'", word);
            return st_hint(err, "put a command to be started after '--'");
        }
        rc = st_target_add_pids(t, word, err);
        if (rc)
            return rc;
    }
    return 0;
}

int st_target_set_comm(void *to, const char *text, struct st_error *err)
{
    struct st_target *t = to;

    t->comm = text;
    return take_kind(t, ST_TARGET_COMM, err);
}

int st_target_set_cgroup(void *to, const char *text, struct st_error *err)
{
    struct st_target *t = to;

    t->cgroup = text;
    return take_kind(t, ST_TARGET_CGROUP, err);
}

int st_target_set_all(void *to, const char *unused, struct st_error *err)
{
    (void)unused;
    return take_kind(to, ST_TARGET_ALL, err);
}

int st_target_set_command(struct st_target *t, char **argv, struct st_error *err)
{
    if (!argv[0])
        return st_fail(err, ST_EUSAGE, "there is no command behind '--'");
    t->argv = argv;
    return take_kind(t, ST_TARGET_COMMAND, err);
}

/* The number behind a key of /proc/PID/status, or -1 and errno. */
static long status_number(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    if (!f)
        return -1;
    while (value < 0 && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            value = strtol(line + strlen(key), NULL, 10);
    if (value < 0 && !ferror(f))
        errno = ESRCH;
    fclose(f);
    return value;
}

static int resolve_pids(struct st_target *t, struct st_error *err)
{
    for (size_t i = 0; i < t->npids; i++) {
        long tgid = status_number(t->pids[i], "Tgid:");

        if (tgid <= 0 && (errno == ENOENT || errno == ESRCH))
            return st_fail(err, ST_EFAIL, "no process %d: it does not exist or has ended", t->pids[i]);
        if (tgid <= 0)
            return st_fail_errno(err, ST_EFAIL, "cannot read /proc/%d/status", t->pids[i]);
        t->pids[i] = (pid_t)tgid;
    }
    return 0;
}

static bool read_comm(const char *pid, char *comm, size_t size)
{
    char path[300];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    ok = fgets(comm, (int)size, f) != NULL;
    fclose(f);
    if (ok)
        comm[strcspn(comm, "\n")] = '\0';
    return ok;
}

struct comm_search {
    struct st_target *t;

    ST_VEC(char *) names; /* seen, for the hint */
};

static int match_comm(struct comm_search *s, const char *pid, struct st_error *err)
{
    char comm[64];
    char *copy;

    if (!read_comm(pid, comm, sizeof(comm)))
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM
                   ? st_fail_errno(err, ST_EFAIL, "cannot read /proc/%s/comm to find '%s'", pid, s->t->comm)
                   : 0;
    if (!strcmp(comm, s->t->comm))
        return atoi(pid) == getpid() ? 0 : push_pid(s->t, atoi(pid), err);
    copy = strdup(comm);
    if (!copy || st_vec_push(&s->names, copy)) {
        free(copy);
        return st_nomem(err, "process names");
    }
    return 0;
}

static int resolve_comm(struct st_target *t, struct st_error *err)
{
    struct comm_search s = {.t = t};
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int rc = 0;

    if (!proc)
        return st_fail_errno(err, ST_EFAIL, "cannot list /proc to find '%s'", t->comm);
    while (!rc && (e = readdir(proc)))
        if (isdigit((unsigned char)e->d_name[0]))
            rc = match_comm(&s, e->d_name, err);
    closedir(proc);
    if (!rc && !t->npids) {
        const char *near = st_nearest(t->comm, strlen(t->comm), (const char *const *)s.names.at, s.names.n);

        rc = st_fail(err, ST_EFAIL, "no process is named '%s'", t->comm);
        if (near)
            st_hint(err, "there is one named '%s'", near);
        else if (strlen(t->comm) > 15)
            st_hint(err, "the kernel keeps 15 characters of a name: try '%.15s'", t->comm);
    }
    for (size_t i = 0; i < s.names.n; i++)
        free(s.names.at[i]);
    st_vec_free(&s.names);
    return rc;
}

static int resolve_cgroup(struct st_target *t, struct st_error *err)
{
    char path[PATH_MAX];
    char procs[PATH_MAX + 16];
    struct stat st;
    FILE *f;
    int pid, rc = 0;

    if (!strncmp(t->cgroup, "/sys/fs/cgroup", 14))
        snprintf(path, sizeof(path), "%s", t->cgroup);
    else
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", t->cgroup + (t->cgroup[0] == '/'));
    if (stat(path, &st))
        return st_fail_errno(err, ST_EFAIL, "no cgroup '%s'", path);
    /* The inode number of a cgroup v2 folder is the id that BPF sees (kernel/cgroup/cgroup.c, cgroup_id). */
    t->cgroup_id = st.st_ino;
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    f = fopen(procs, "re");
    if (!f)
        return st_fail_errno(err, ST_EFAIL, "cannot read '%s': is it a cgroup v2 folder?", procs);
    while (!rc && fscanf(f, "%d", &pid) == 1)
        rc = push_pid(t, pid, err);
    fclose(f);
    if (!rc && !t->npids)
        return st_fail(err, ST_EFAIL, "cgroup '%s' holds no process", path);
    return rc;
}

int st_target_resolve(struct st_target *t, struct st_error *err)
{
    switch (t->kind) {
    case ST_TARGET_PIDS:
        return resolve_pids(t, err);
    case ST_TARGET_COMM:
        return resolve_comm(t, err);
    case ST_TARGET_CGROUP:
        return resolve_cgroup(t, err);
    case ST_TARGET_ALL:
    case ST_TARGET_COMMAND:
        return 0;
    case ST_TARGET_NONE:
        break;
    }
    return st_fail(err, ST_EUSAGE,
                   "whom to watch? Name a target: -p PID, --comm NAME, --cgroup PATH, -a, or -- COMMAND");
}

int st_target_threads(pid_t pid, pid_t **tids, struct st_error *err)
{
    ST_VEC(pid_t) found = {0};
    char path[64];
    struct dirent *e;
    DIR *d;

    *tids = NULL;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    d = opendir(path);
    if (!d && (errno == ENOENT || errno == ESRCH))
        return 0;
    if (!d)
        return st_fail_errno(err, ST_EFAIL, "cannot list the threads of process %d", pid);
    while ((e = readdir(d))) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        if (st_vec_push(&found, (pid_t)atoi(e->d_name))) {
            st_vec_free(&found);
            closedir(d);
            return st_nomem(err, "the list of threads");
        }
    }
    closedir(d);
    *tids = found.at;
    return (int)found.n;
}

void st_target_free(struct st_target *t)
{
    free(t->pids);
    t->pids = NULL;
    t->npids = 0;
}
