/* Containers: folders of cgroup2, and who knows their names. */
#include "base/container.h"
#include "base/container_names.h"
#include "base/safetext.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEEPEST = 24,
    MOST_LISTED = 6, /* in a message */
};

/* ---- folders ---- */

static bool is_id(const char *text)
{
    return strlen(text) == ST_CONTAINER_ID && strspn(text, "0123456789abcdef") == ST_CONTAINER_ID;
}

/* Below these folders an id alone is one. */
static bool is_of_runtime(const char *parents)
{
    static const char *const words[] = {"/docker", "/kubepods", "/libpod_parent", "/containerd",
                                        "/machine.slice"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(parents, words[i]))
            return true;
    return false;
}

/* The id of the container whose folder is called so, below `parents`. False: it is none's. */
static bool id_of(const char *name, const char *parents, char id[ST_CONTAINER_ID + 1])
{
    static const char *const prefixes[] = {"docker-", "libpod-", "cri-containerd-", "crio-", "nerdctl-"};
    char base[NAME_MAX + 1];
    size_t n;

    snprintf(base, sizeof(base), "%s", name);
    n = strlen(base);
    if (n > 6 && !strcmp(base + n - 6, ".scope"))
        base[n - 6] = '\0';
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(base, prefixes[i], strlen(prefixes[i])) && is_id(base + strlen(prefixes[i]))) {
            memcpy(id, base + strlen(prefixes[i]), ST_CONTAINER_ID + 1);
            return true;
        }
    if (!is_id(base) || !is_of_runtime(parents))
        return false;
    memcpy(id, base, ST_CONTAINER_ID + 1);
    return true;
}

struct search {
    st_container_fn *fn;

    void *ctx;

    struct container_names names;
};

static int take(struct search *s, const char *parents, const char *name, struct st_error *err)
{
    struct st_container c = {0};
    char path[PATH_MAX];

    if (!id_of(name, parents, c.id))
        return 0;
    snprintf(path, sizeof(path), "%s/%s", parents, name);
    c.path = path;
    container_name(&s->names, &c);
    return s->fn(s->ctx, &c, err);
}

/* Folders come and go meanwhile. */
static int search_below(struct search *s, int folder, const char *path, int depth, struct st_error *err)
{
    DIR *d = fdopendir(folder);
    struct dirent *e;
    int rc = 0;

    if (!d) {
        close(folder);
        return st_nomem(err, "the search for containers");
    }
    while (!rc && depth < DEEPEST && (e = readdir(d))) {
        char below[PATH_MAX];
        int fd;

        if (e->d_type != DT_DIR || *e->d_name == '.')
            continue;
        rc = take(s, path, e->d_name, err);
        if (rc || (size_t)snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= sizeof(below))
            continue;
        fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0)
            rc = search_below(s, fd, below, depth + 1, err);
    }
    closedir(d);
    return rc;
}

int st_container_each(st_container_fn *fn, void *ctx, struct st_error *err)
{
    struct search s = {.fn = fn, .ctx = ctx};
    char mount[PATH_MAX];
    int fd, rc;

    if (st_cgroup_mount(mount, sizeof(mount))) {
        st_fail(err, ST_EFAIL, "cannot look for containers: cgroups of version 2 are not mounted");
        return st_hint(err, "mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup");
    }
    fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot look for containers in %s", mount);
    rc = container_names_open(&s.names, err);
    if (rc)
        close(fd);
    else
        rc = search_below(&s, fd, mount, 0, err);
    container_names_close(&s.names);
    return rc;
}

/* ---- one of them ---- */

enum match { NONE, BY_PREFIX, BY_NAME, BY_ID };

struct wanted {
    const char *text;

    enum match best;

    unsigned n; /* others so good, that one included */

    char path[PATH_MAX];

    char id[ST_CONTAINER_ID + 1];

    char same[512], there[512]; /* those so good, and all: for a message */

    unsigned seen;
};

static enum match match(const struct st_container *c, const char *text)
{
    size_t pod = strlen(c->pod);

    if (!strcmp(c->id, text))
        return BY_ID;
    if (*c->name && !strcmp(c->name, text))
        return BY_NAME;
    if (pod && !strncmp(text, c->pod, pod) && text[pod] == '/' && !strcmp(text + pod + 1, c->name))
        return BY_NAME;
    return *text && !strncmp(c->id, text, strlen(text)) ? BY_PREFIX : NONE;
}

static void list(char *text, size_t size, unsigned number, const struct st_container *c)
{
    size_t at = strlen(text);
    char name[64], pod[64];

    st_safe_text(name, sizeof(name), c->name);
    st_safe_text(pod, sizeof(pod), c->pod);
    if (number < MOST_LISTED && at < size - 1)
        snprintf(text + at, size - at, "%s%.12s%s%s%s%s%s", number ? ", " : "", c->id, *name ? " (" : "", pod,
                 *pod ? "/" : "", name, *name ? ")" : "");
    else if (number == MOST_LISTED)
        snprintf(text + at, size - at, ", ...");
}

static int look(void *ctx, const struct st_container *c, struct st_error *err)
{
    struct wanted *w = ctx;
    enum match m = match(c, w->text);

    (void)err;
    list(w->there, sizeof(w->there), w->seen++, c);
    if (m == NONE || m < w->best || (m == w->best && !strcmp(c->id, w->id)))
        return 0; /* a runtime may have a group within that of the container */
    if (m > w->best) {
        w->n = 0;
        w->same[0] = '\0';
    }
    list(w->same, sizeof(w->same), w->n++, c);
    w->best = m;
    snprintf(w->path, sizeof(w->path), "%s", c->path);
    snprintf(w->id, sizeof(w->id), "%s", c->id);
    return 0;
}

static int not_found(const struct wanted *w, const char *safe, struct st_error *err)
{
    char mount[PATH_MAX] = "";

    st_cgroup_mount(mount, sizeof(mount));
    st_fail(err, ST_EFAIL, "no running container has the id or the name '%s'", safe);
    st_hint(err,
            "looked for in %s: docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope, crio-ID.scope, "
            "nerdctl-ID.scope, docker/ID, kubepods/.../ID",
            mount);
    if (!w->seen)
        return st_hint(err, "there is none: has it ended? A folder of another name: --cgroup PATH");
    st_hint(err, "there %s: %s", w->seen > 1 ? "are" : "is", w->there);
    return st_hint(err, "where no name stands, none was told by root or by you: give the id");
}

int st_container_find(const char *text, struct st_cgroup *group, struct st_error *err)
{
    struct wanted w = {.text = text};
    char safe[80];
    int rc = st_container_each(look, &w, err);

    st_safe_text(safe, sizeof(safe), text);
    if (rc)
        return rc;
    if (!w.n)
        return not_found(&w, safe, err);
    if (w.n == 1)
        return st_cgroup_find(w.path, group, err);
    st_fail(err, ST_EUSAGE, "'%s' stands for %u containers: %s", safe, w.n, w.same);
    return st_hint(err, "give more of the id, or POD/NAME");
}
