/* Processes that come into the target. */
#include "recorder/arm/joins.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "triggers/joins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* So often they are looked for where the kernel tells this user nothing: a cgroup takes reading a file, a
 * name those of all processes. */
#define LOOK_GROUP 100000000ull
#define LOOK_NAMES 500000000ull

enum { MOST_ROUNDS = 16 };

static uint64_t look_every(const struct rec_joins *j)
{
    return j->target->kind == ST_TARGET_CGROUP ? LOOK_GROUP : LOOK_NAMES;
}

static int on_came(void *ctx, pid_t pid, uint64_t ktime, struct st_error *err)
{
    struct rec_joins *j = ctx;

    return st_vec_push(&j->list, (struct rec_join){.pid = pid, .ktime = ktime})
               ? st_nomem(err, "the processes that came")
               : 0;
}

static int on_found(void *ctx, pid_t pid, struct st_error *err)
{
    struct rec_joins *j = ctx;

    return st_vec_push(&j->list, (struct rec_join){.pid = pid, .ktime = st_mono_ns(), .found = true})
               ? st_nomem(err, "the processes that came")
               : 0;
}

static int on_gone(void *ctx, struct st_error *err)
{
    struct rec_joins *j = ctx;

    (void)err;
    j->removed = true;
    return 0;
}

static int find(struct rec_joins *j, struct st_error *err)
{
    bool of_group = j->target->kind == ST_TARGET_CGROUP;
    int rc = 0;

    if (!of_group || st_cgroup_exists(&j->target->group))
        rc = st_target_each(j->target, on_found, j, err);
    if (!of_group || st_cgroup_exists(&j->target->group))
        return rc;
    j->removed = true; /* perhaps while it was read */
    return rc == ST_EFAIL ? 0 : rc;
}

/* What those that are noted have forked. The children of who came into a cgroup are in it. */
static int find_children(struct rec_joins *j, size_t n, struct st_error *err)
{
    int rc = 0;

    if (j->target->kind == ST_TARGET_CGROUP)
        return find(j, err);
    for (size_t i = 0; !rc && i < n; i++)
        rc = st_target_children(j->list.at[i].pid, on_found, j, err);
    return rc;
}

/* What is noted. Where processes fork faster than they are found, it is left to the records of their parents.
 */
static int tell_came(struct rec_joins *j, struct st_error *err)
{
    int rc = 0;

    for (int round = 0; rc >= 0 && j->list.n; round++) {
        size_t n = j->list.n;

        rc = j->to.came(j->to.ctx, j->list.at, n, err);
        if (rc == 1 && round < MOST_ROUNDS)
            rc = find_children(j, n, err);
        memmove(j->list.at, j->list.at + n, (j->list.n -= n) * sizeof(*j->list.at));
    }
    return rc < 0 ? rc : 0;
}

static int tell(struct rec_joins *j, struct st_error *err)
{
    int rc = tell_came(j, err);

    if (rc || !j->removed || j->told)
        return rc;
    j->told = true;
    return j->to.gone(j->to.ctx, err);
}

int rec_joins_look(struct rec_joins *j, struct st_error *err)
{
    int rc = find(j, err);

    return rc ? rc : tell(j, err);
}

static int hear(struct rec_joins *j, struct st_error *err)
{
    const struct trg_joins_to to = {on_came, on_gone, j};
    bool lost = false;
    int rc = j->heard ? trg_joins_take(j->heard, &to, &lost, err) : 0;

    return rc || !lost ? rc : find(j, err);
}

int rec_joins_take(struct rec_joins *j, struct st_error *err)
{
    const uint64_t one = 1;
    int rc = hear(j, err);

    if (!rc)
        rc = tell_came(j, err);
    if (!rc && j->removed && !j->told && write(j->later.fd, &one, sizeof(one)) != sizeof(one))
        rc = st_fail_errno(err, ST_EFAIL, "cannot wake the loop");
    return rc;
}

static int on_later(void *ctx, struct st_error *err)
{
    struct rec_joins *j = ctx;

    rec_timer_clear(j->later.fd);
    return tell(j, err);
}

static int on_heard(void *ctx, struct st_error *err)
{
    int rc = hear(ctx, err);

    return rc ? rc : tell(ctx, err);
}

static int on_timer(void *ctx, struct st_error *err)
{
    struct rec_joins *j = ctx;

    rec_timer_clear(j->watch.fd);
    return rec_joins_look(j, err);
}

static int open_timer(struct rec_joins *j, struct st_error *err)
{
    int fd = rec_timer_open(err);

    if (fd < 0)
        return fd;
    j->watch = (struct rec_watch){.fd = fd, .ready = on_timer, .ctx = j};
    return rec_timer_set(fd, look_every(j), look_every(j), err);
}

static int open_later(struct rec_joins *j, struct st_error *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot wait for processes that come (eventfd)");
    j->later = (struct rec_watch){.fd = fd, .ready = on_later, .ctx = j};
    return rec_loop_add(j->loop, &j->later, err);
}

/* What is said of triggers holds for these programs too. */
static void keep_reason(struct rec_joins *j, const char *text)
{
    static const char privilege[] = "--on needs BPF, and ", others[] = "--on ";
    const char *before = "";

    if (!strncmp(text, privilege, strlen(privilege))) {
        text += strlen(privilege);
    } else if (!strncmp(text, others, strlen(others))) {
        text += strlen(others);
        before = "to hear of them ";
    }
    snprintf(j->why, sizeof(j->why), "%s%.*s", before, (int)strcspn(text, "\n"), text);
}

int rec_joins_open(struct rec_joins *j, int loop, const struct st_target *target,
                   const struct rec_joins_to *to, struct st_error *err)
{
    struct st_error why = {0};
    int rc;

    *j = (struct rec_joins){.loop = loop, .target = target, .to = *to, .watch.fd = -1, .later.fd = -1};
    rc = trg_joins_open(target, &j->heard, &why);
    if (!rc) {
        j->watch = (struct rec_watch){.fd = trg_joins_fd(j->heard), .ready = on_heard, .ctx = j};
    } else if (rc == ST_ENOMEM) {
        return st_fail(err, rc, "%s", why.text);
    } else {
        keep_reason(j, why.text);
        rc = open_timer(j, err);
    }
    if (!rc)
        rc = rec_loop_add(loop, &j->watch, err);
    return rc ? rc : open_later(j, err);
}

void rec_joins_describe(const struct rec_joins *j, char *text, size_t size)
{
    char every[24];

    *text = '\0';
    if (*j->why)
        snprintf(text, size, " (looked for every %s: %s)",
                 st_format_duration((int64_t)look_every(j), every, sizeof(every)), j->why);
}

void rec_joins_close(struct rec_joins *j)
{
    rec_loop_remove(j->loop, &j->watch);
    rec_loop_remove(j->loop, &j->later);
    if (j->later.fd >= 0)
        close(j->later.fd);
    if (j->heard)
        trg_joins_close(j->heard);
    else if (j->watch.fd >= 0)
        close(j->watch.fd);
    j->heard = NULL;
    j->watch.fd = j->later.fd = -1;
    st_vec_free(&j->list);
}
