/* Targets: from the command line to process ids. */
#include "base/target.h"
#include "base/container.h"
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

enum { ST_COMM = 16 }; /* a name and its NUL, as the kernel keeps it (TASK_COMM_LEN) */

static int one_only(struct st_error *err)
{
    return st_fail(err, ST_EUSAGE, "one target only: -p, --comm, --cgroup, --container, -a, or -- COMMAND");
}

static int take_kind(struct st_target *t, enum st_target_kind kind, struct st_error *err)
{
    if (t->kind != ST_TARGET_NONE && t->kind != kind)
        return one_only(err);
    t->kind = kind;
    return 0;
}

int st_target_add(struct st_target *t, pid_t pid, struct st_error *err)
{
    for (size_t i = 0; i < t->npids; i++)
        if (t->pids[i] == pid)
            return 0;
    if (st_vec_reserve_raw((void **)&t->pids, &t->room, t->npids, 1, sizeof(*t->pids)))
        return st_nomem(err, "the list of processes");
    t->pids[t->npids++] = pid;
    return 0;
}

void st_target_remove(struct st_target *t, pid_t pid)
{
    for (size_t i = 0; i < t->npids; i++)
        if (t->pids[i] == pid) {
            memmove(&t->pids[i], &t->pids[i + 1], (--t->npids - i) * sizeof(*t->pids));
            return;
        }
}

bool st_target_waits(const struct st_target *t)
{
    return t->kind == ST_TARGET_COMM || t->kind == ST_TARGET_CGROUP;
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
            rc = st_target_add(t, (pid_t)pid, err);
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
    return t->container ? one_only(err) : take_kind(t, ST_TARGET_CGROUP, err);
}

int st_target_set_container(void *to, const char *text, struct st_error *err)
{
    struct st_target *t = to;

    t->container = text;
    return t->cgroup ? one_only(err) : take_kind(t, ST_TARGET_CGROUP, err);
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

bool st_target_has_threads(pid_t pid)
{
    return status_number(pid, "Threads:") > 1;
}

pid_t st_target_parent(pid_t pid)
{
    long parent = status_number(pid, "PPid:");

    return parent > 0 ? (pid_t)parent : 0;
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

/* It keeps its name until it is reaped. */
static bool has_ended(pid_t pid)
{
    char path[64], line[512];
    const char *end = NULL;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    /* The name in brackets may hold anything; the last bracket ends it. */
    if (f && fgets(line, sizeof(line), f))
        end = strrchr(line, ')');
    if (f)
        fclose(f);
    return !end || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X';
}

typedef ST_VEC(char *) name_list;

/* What is looked for, and what is there. */
struct comm_search {
    const char *comm;

    st_cgroup_process_fn *fn;

    void *ctx;

    name_list *others; /* their names; NULL: nobody asks */
};

static int match_comm(const struct comm_search *s, const char *pid, struct st_error *err)
{
    char comm[64], *copy;

    if (!read_comm(pid, comm, sizeof(comm)))
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM
                   ? st_fail_errno(err, ST_EFAIL, "cannot read /proc/%s/comm to find '%s'", pid, s->comm)
                   : 0;
    if (!strcmp(comm, s->comm))
        return atoi(pid) == getpid() || has_ended(atoi(pid)) ? 0 : s->fn(s->ctx, atoi(pid), err);
    if (!s->others)
        return 0;
    copy = strdup(comm);
    if (copy && !st_vec_push(s->others, copy))
        return 0;
    free(copy);
    return st_nomem(err, "process names");
}

static int each_of_name(const struct comm_search *s, struct st_error *err)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int rc = 0;

    if (!proc)
        return st_fail_errno(err, ST_EFAIL, "cannot list /proc to find '%s'", s->comm);
    while (!rc && (e = readdir(proc)))
        if (isdigit((unsigned char)e->d_name[0]))
            rc = match_comm(s, e->d_name, err);
    closedir(proc);
    return rc;
}

static int add_found(void *ctx, pid_t pid, struct st_error *err)
{
    return st_target_add(ctx, pid, err);
}

/* One of the name may come; of a longer one none can. */
static int nobody_has(struct st_target *t, const name_list *others, struct st_error *err)
{
    const char *near = st_nearest(t->comm, strlen(t->comm), (const char *const *)others->at, others->n);

    snprintf(t->near, sizeof(t->near), "%s", near ? near : "");
    if (strlen(t->comm) < ST_COMM)
        return 0;
    st_fail(err, ST_EUSAGE, "no process is named '%s'", t->comm);
    return st_hint(err, "the kernel keeps 15 characters of a name: try '%.15s'", t->comm);
}

static int resolve_comm(struct st_target *t, struct st_error *err)
{
    name_list others = {0};
    const struct comm_search s = {.comm = t->comm, .fn = add_found, .ctx = t, .others = &others};
    int rc = *t->comm ? each_of_name(&s, err) : st_fail(err, ST_EUSAGE, "--comm: the name is empty");

    if (!rc && !t->npids)
        rc = nobody_has(t, &others, err);
    for (size_t i = 0; i < others.n; i++)
        free(others.at[i]);
    st_vec_free(&others);
    return rc;
}

/* Whom the walk over a cgroup is for. */
struct but_us {
    st_cgroup_process_fn *fn;

    void *ctx;
};

static int take_but_us(void *ctx, pid_t pid, struct st_error *err)
{
    const struct but_us *b = ctx;

    return pid == getpid() ? 0 : b->fn(b->ctx, pid, err);
}

int st_target_each(const struct st_target *t, st_cgroup_process_fn *fn, void *ctx, struct st_error *err)
{
    struct but_us but_us = {fn, ctx};
    const struct comm_search s = {.comm = t->comm, .fn = fn, .ctx = ctx};

    if (t->kind == ST_TARGET_COMM)
        return each_of_name(&s, err);
    return t->kind == ST_TARGET_CGROUP ? st_cgroup_each(&t->group, take_but_us, &but_us, err) : 0;
}

static int resolve_cgroup(struct st_target *t, struct st_error *err)
{
    int rc = t->container ? st_container_find(t->container, &t->group, err)
                          : st_cgroup_find(t->cgroup, &t->group, err);

    return rc ? rc : st_target_each(t, add_found, t, err);
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
                   "whom to watch? Name a target: -p PID, --comm NAME, --cgroup PATH, --container NAME, -a, "
                   "or -- COMMAND");
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

int st_target_children(pid_t pid, st_cgroup_process_fn *fn, void *ctx, struct st_error *err)
{
    pid_t *tids = NULL;
    int n = st_target_threads(pid, &tids, err), rc = n < 0 ? n : 0, child;

    for (int i = 0; !rc && i < n; i++) {
        char path[64];
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tids[i]);
        f = fopen(path, "re");
        while (f && !rc && fscanf(f, "%d", &child) == 1)
            rc = fn(ctx, child, err);
        if (f)
            fclose(f);
    }
    free(tids);
    return rc;
}

void st_target_free(struct st_target *t)
{
    free(t->pids);
    t->pids = NULL;
    t->npids = t->room = 0;
    st_cgroup_free(&t->group);
}
