/* Control groups: /proc/self/mountinfo, and the folders of cgroup2. */
#include "base/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    DEEPEST =
        31, /* folders below the named one: so far up the BPF programs look (triggers/bpf/follow.bpf.h) */
};

/* ---- mounts ---- */

/* "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw": the mount point, and the options of
 * the file system. False: another file system. */
static bool parse_mount(char *line, const char *type, const char **point, const char **options)
{
    char *rest = strstr(line, " - "), *at = line;
    size_t n = strlen(type);

    if (!rest || strncmp(rest + 3, type, n) != 0 || rest[3 + n] != ' ')
        return false;
    for (int i = 0; at && i < 4; i++)
        at = strchr(at + 1, ' ');
    if (!at || at >= rest)
        return false;
    *point = at + 1;
    at[1 + strcspn(at + 1, " ")] = '\0';
    rest = strchr(rest + 3 + n + 1, ' ');
    *options = rest ? rest + 1 : "";
    rest = rest ? strchr(rest, '\n') : NULL;
    if (rest)
        *rest = '\0';
    return true;
}

/* Calls fn for each mount of that type until it returns true. */
static bool find_mount(const char *type, bool (*fn)(void *ctx, const char *point, const char *options),
                       void *ctx)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_MAX];
    const char *point, *options;
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f))
        found = parse_mount(line, type, &point, &options) && fn(ctx, point, options);
    if (f)
        fclose(f);
    return found;
}

struct text {
    char *at;

    size_t size;
};

static bool take_point(void *ctx, const char *point, const char *options)
{
    const struct text *to = ctx;

    (void)options;
    return (size_t)snprintf(to->at, to->size, "%s", point) < to->size;
}

int st_cgroup_mount(char *path, size_t size)
{
    struct text to = {path, size};

    return find_mount("cgroup2", take_point, &to) ? 0 : -1;
}

/* ---- version 1 ---- */

/* A folder of version 1. */
struct old_group {
    const char *text; /* as it was named */

    char path[PATH_MAX], within[PATH_MAX], controllers[256]; /* its folder, that in its hierarchy */
};

/* Whether the named one is below this mount, by its path or within the hierarchy. */
static bool is_old(void *ctx, const char *point, const char *options)
{
    struct old_group *g = ctx;
    size_t n = strlen(point);
    const char *comma = strchr(options, ','), *last = strrchr(options, ',');
    struct stat st;

    if (!strncmp(g->text, point, n) && (g->text[n] == '/' || !g->text[n]))
        snprintf(g->within, sizeof(g->within), "%s", g->text + n);
    else
        snprintf(g->within, sizeof(g->within), "%s%s", *g->text == '/' ? "" : "/", g->text);
    if ((size_t)snprintf(g->path, sizeof(g->path), "%s%s", point, g->within) >= sizeof(g->path) ||
        stat(g->path, &st) || !S_ISDIR(st.st_mode))
        return false;
    snprintf(g->controllers, sizeof(g->controllers), "%s", last ? last + 1 : comma ? comma + 1 : options);
    return true;
}

/* The path in version 2 of the first process of a group. "" where it is in the root, or there is none. */
static void path_of_first(const char *folder, char *path, size_t size)
{
    char name[PATH_MAX + 32], line[PATH_MAX];
    int pid = 0;
    FILE *f;

    *path = '\0';
    snprintf(name, sizeof(name), "%s/cgroup.procs", folder);
    f = fopen(name, "re");
    if (!f)
        return;
    if (fscanf(f, "%d", &pid) != 1)
        pid = 0;
    fclose(f);
    snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
    f = pid > 0 ? fopen(name, "re") : NULL;
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "0::", 3) && strcmp(line + 3, "/\n") != 0)
            snprintf(path, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (f)
        fclose(f);
}

static int refuse_old(const struct old_group *g, const char *mount, struct st_error *err)
{
    char same[2 * PATH_MAX], of_first[PATH_MAX];
    struct stat st;

    st_fail(err, ST_EUSAGE, "'%s' is a cgroup of version 1 (%s); --cgroup takes one of version 2", g->path,
            g->controllers);
    if (!mount)
        return st_hint(err, "version 2 is not mounted: mkdir -p /sys/fs/cgroup/unified && "
                            "mount -t cgroup2 none /sys/fs/cgroup/unified");
    snprintf(same, sizeof(same), "%s%s", mount, g->within);
    if (g->within[1] && !stat(same, &st))
        return st_hint(err, "the same group in version 2: --cgroup %s", same);
    path_of_first(g->path, of_first, sizeof(of_first));
    if (*of_first)
        return st_hint(err, "its first process is in this one of version 2: --cgroup %s%s", mount, of_first);
    return st_hint(
        err,
        "its processes are in the root of version 2: mkdir %s, and write each of their numbers into "
        "the file cgroup.procs there",
        same);
}

/* ---- finding ---- */

static bool is_of_type(const char *path, unsigned long magic)
{
    struct statfs fs;

    return !statfs(path, &fs) && (unsigned long)fs.f_type == magic;
}

/* A threaded group has threads of processes that are counted to a group above it. */
static bool is_threaded(const char *path)
{
    char name[PATH_MAX + 16], type[32] = "";
    FILE *f;

    snprintf(name, sizeof(name), "%s/cgroup.type", path);
    f = fopen(name, "re");
    if (f && !fgets(type, sizeof(type), f))
        type[0] = '\0';
    if (f)
        fclose(f);
    return !strcmp(type, "threaded\n");
}

static int take(const char *path, struct st_cgroup *group, struct st_error *err)
{
    struct stat st;

    if (stat(path, &st))
        return st_fail_errno(err, ST_EFAIL, "no cgroup '%s'", path);
    if (!S_ISDIR(st.st_mode))
        return st_fail(err, ST_EUSAGE, "'%s' is a file: a cgroup is a folder", path);
    if (is_threaded(path)) {
        st_fail(err, ST_EUSAGE, "cgroup '%s' is threaded: it holds threads, no processes", path);
        return st_hint(err, "name the nearest group above it whose cgroup.type is 'domain threaded'");
    }
    group->path = strdup(path);
    group->id = st.st_ino;
    return group->path ? 0 : st_nomem(err, "the path of a cgroup");
}

int st_cgroup_find(const char *text, struct st_cgroup *group, struct st_error *err)
{
    char mount[PATH_MAX], path[2 * PATH_MAX];
    bool mounted = !st_cgroup_mount(mount, sizeof(mount));
    struct old_group old = {.text = text};
    struct stat st;

    *group = (struct st_cgroup){0};
    if (*text == '/' && is_of_type(text, CGROUP2_SUPER_MAGIC))
        return take(text, group, err);
    snprintf(path, sizeof(path), "%s%s%s", mounted ? mount : "/sys/fs/cgroup", *text == '/' ? "" : "/", text);
    if (*text == '/' && is_of_type(text, CGROUP_SUPER_MAGIC) && find_mount("cgroup", is_old, &old))
        return refuse_old(&old, mounted ? mount : NULL, err);
    if (mounted && !stat(path, &st))
        return take(path, group, err);
    if (find_mount("cgroup", is_old, &old))
        return refuse_old(&old, mounted ? mount : NULL, err);
    if (!mounted) {
        st_fail(err, ST_EFAIL, "no cgroup '%s': cgroups of version 2 are not mounted", text);
        return st_hint(err, "mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup");
    }
    if (*text == '/' && !strncmp(text, mount, strlen(mount)))
        snprintf(path, sizeof(path), "%s", text);
    errno = ENOENT;
    return st_fail_errno(err, ST_EFAIL, "no cgroup '%s'", path);
}

bool st_cgroup_exists(const struct st_cgroup *group)
{
    struct stat st;

    return group->path && !stat(group->path, &st) && st.st_ino == group->id;
}

/* ---- who is in it ---- */

struct walk {
    st_cgroup_process_fn *fn;

    void *ctx;
};

/* Takes `fd` over. */
static int each_in_file(const struct walk *w, int fd, struct st_error *err)
{
    FILE *f = fdopen(fd, "re");
    int pid, rc = 0;

    if (!f) {
        close(fd);
        return st_nomem(err, "the processes of a cgroup");
    }
    while (!rc && fscanf(f, "%d", &pid) == 1)
        rc = pid > 0 ? w->fn(w->ctx, pid, err) : 0; /* 0: of another namespace of process numbers */
    fclose(f);
    return rc;
}

static int each_in_folder(const struct walk *w, int folder, int depth, struct st_error *err);

static int each_below(const struct walk *w, int folder, int depth, struct st_error *err)
{
    int copy = dup(folder), rc = 0;
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;

    if (!d && copy >= 0)
        close(copy);
    if (!d)
        return st_fail_errno(err, ST_EFAIL, "cannot list a cgroup");
    rewinddir(d);
    while (!rc && (e = readdir(d))) {
        int fd;

        if (e->d_type != DT_DIR || *e->d_name == '.')
            continue;
        fd = openat(folder, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            continue; /* it was removed */
        rc = each_in_folder(w, fd, depth + 1, err);
        close(fd);
    }
    closedir(d);
    return rc;
}

static int each_in_folder(const struct walk *w, int folder, int depth, struct st_error *err)
{
    int fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC), rc = 0;

    if (fd >= 0)
        rc = each_in_file(w, fd, err);
    else if (!depth)
        rc = st_fail_errno(err, ST_EFAIL, "cannot read cgroup.procs");
    return rc || depth == DEEPEST ? rc : each_below(w, folder, depth, err);
}

int st_cgroup_each(const struct st_cgroup *group, st_cgroup_process_fn *fn, void *ctx, struct st_error *err)
{
    const struct walk w = {fn, ctx};
    int folder = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (folder < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot open the cgroup '%s'", group->path);
    rc = each_in_folder(&w, folder, 0, err);
    close(folder);
    return rc;
}

void st_cgroup_free(struct st_cgroup *group)
{
    free(group->path);
    *group = (struct st_cgroup){0};
}
