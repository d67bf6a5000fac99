/* Processes that come into the target while it is recorded, and those that end. */
#include "base/log.h"
#include "base/safetext.h"
#include "recorder/arm/arm.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef ST_VEC(struct rec_sideband_join) join_list;

/* Known already, or one that this program has started: its decoder, an action. */
static bool is_no_news(const struct arm *arm, const struct rec_join *join)
{
    if (rec_alive_has(&arm->alive, join->pid) ||
        (join->found && rec_sideband_knows(arm->sideband, join->pid)))
        return true;
    return join->pid == getpid() || st_target_parent(join->pid) == getpid();
}

/* The limit of open files is no reason to end. */
static int watch_it(struct arm *arm, pid_t pid, struct st_error *err)
{
    struct st_error why = {0};
    int rc = rec_alive_add(&arm->alive, pid, &why);

    if (rc != ST_ECANNOT)
        return rc ? st_fail(err, rc, "%s", why.text) : 0;
    if (!arm->told_unwatched)
        st_log_warn("process %d came and is not recorded: %s (told once)", pid, why.text);
    arm->told_unwatched = true;
    return 1;
}

static int choose(struct arm *arm, const struct rec_join *from, size_t n, join_list *list,
                  struct st_error *err)
{
    /* What is known is known from the records that wait. */
    int rc = from[0].found ? rec_sideband_drain(arm->sideband, err) : 0;

    for (size_t i = 0; rc >= 0 && i < n; i++) {
        if (is_no_news(arm, &from[i]))
            continue;
        rc = watch_it(arm, from[i].pid, err);
        if (!rc && st_vec_push(list, (struct rec_sideband_join){.pid = from[i].pid, .time = from[i].ktime}))
            rc = st_nomem(err, "the processes that came");
    }
    return rc < 0 ? rc : 0;
}

static int record_it(struct arm *arm, const struct rec_sideband_join *join, struct st_error *err)
{
    int rc = 0;

    if (join->refused)
        return 0;
    if (!join->known)
        rc = arm->ops->joined(arm->source, join->pid, err);
    if (!rc && arm->options.triggers)
        rc = trg_joined(arm->options.triggers, join->pid, err);
    if (!rc && arm->options.marks)
        rc = trg_joined(arm->options.marks, join->pid, err);
    return rc ? rc : st_target_add(&arm->options.target, join->pid, err);
}

static void tell_control(struct arm *arm)
{
    rec_control_targets(arm->control, arm->options.target.pids, arm->options.target.npids);
}

int arm_on_came(void *ctx, const struct rec_join *from, size_t n, struct st_error *err)
{
    struct arm *arm = ctx;
    join_list list = {0};
    int rc = choose(arm, from, n, &list, err);
    bool any = list.n > 0;

    if (!rc && any)
        rc = rec_sideband_join(arm->sideband, list.at, list.n, err);
    for (size_t i = 0; !rc && i < list.n; i++)
        rc = record_it(arm, &list.at[i], err);
    st_vec_free(&list);
    if (!rc && any)
        tell_control(arm);
    return rc ? rc : any;
}

int arm_on_left(void *ctx, pid_t pid, struct st_error *err)
{
    struct arm *arm = ctx;

    (void)err;
    if (!st_target_waits(&arm->options.target))
        return 0;
    st_target_remove(&arm->options.target, pid);
    tell_control(arm);
    return 0;
}

int arm_on_gone(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;
    char safe[256];

    st_safe_text(safe, sizeof(safe), arm->options.target.group.path);
    st_log_info("the cgroup %s was removed", safe);
    return arm_on_ended(arm, err);
}

int arm_open_joins(struct arm *arm, struct st_error *err)
{
    const struct rec_joins_to to = {arm_on_came, arm_on_gone, arm};

    if (!st_target_waits(&arm->options.target))
        return 0;
    arm->alive.left = arm_on_left;
    return rec_joins_open(&arm->joins, arm->loop, &arm->options.target, &to, err);
}

/* "process is named 'x'", "process is in container web (cgroup PATH)": what there is none of, or so many. */
static void describe_place(const struct st_target *t, char *text, size_t size)
{
    char safe[256], container[128];

    st_safe_text(safe, sizeof(safe), t->kind == ST_TARGET_COMM ? t->comm : t->group.path);
    st_safe_text(container, sizeof(container), t->container ? t->container : "");
    if (t->kind == ST_TARGET_COMM)
        snprintf(text, size, "named '%s'", safe);
    else if (t->container)
        snprintf(text, size, "in container %s (cgroup %s)", container, safe);
    else
        snprintf(text, size, "in cgroup %s", safe);
}

void arm_joins_describe(const struct arm *arm, char *text, size_t size)
{
    const struct st_target *t = &arm->options.target;
    char place[512], how[320], near[128] = "", safe[80];

    *text = '\0';
    if (!st_target_waits(t))
        return;
    rec_joins_describe(&arm->joins, how, sizeof(how));
    describe_place(t, place, sizeof(place));
    st_safe_text(safe, sizeof(safe), t->near);
    if (*safe)
        snprintf(near, sizeof(near), " (there is one named '%s')", safe);
    if (t->npids)
        snprintf(text, size, "%zu process%s %s, and those that come%s; ", t->npids, t->npids == 1 ? "" : "es",
                 place, how);
    else
        snprintf(text, size, "no process is %s yet%s: those that come%s; ", place, near, how);
}
