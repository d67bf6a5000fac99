/* Processes that come into the target while the side-band is live. */
#include "base/log.h"
#include "base/target_threads.h"
#include "recorder/sideband/sideband_impl.h"
#include "recorder/sideband/synth.h"

#include <stdlib.h>

enum { LEAST_SWEPT = 512 /* events; of fewer, those of ended threads stay open */ };

/* Events are CPU-wide: what their rings hold of the processes is kept too, as far back as it goes. */
static int expect(struct rec_sideband *sb, const struct rec_sideband_join *list, size_t n,
                  struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++)
        if (rec_pid_set_add(&sb->pids, list[i].pid) || rec_pid_set_add(&sb->joining, list[i].pid))
            rc = st_nomem(err, "the list of processes");
    if (!rc)
        rc = rec_sideband_drain(sb, err);
    sb->joining.n = 0;
    return rc;
}

/* Each time when there are twice as many as the last time. */
static void sweep(struct rec_sideband *sb)
{
    size_t events = sb->groups[REC_SIDEBAND_STATE].events.n;

    if (events < 2 * sb->swept || events < LEAST_SWEPT)
        return;
    for (int i = 0; i < REC_SIDEBAND_KERNEL; i++)
        rec_group_drop_ended(&sb->groups[i]);
    sb->swept = sb->groups[REC_SIDEBAND_STATE].events.n;
}

/* What a user cannot attach to, or the limits do not allow, is no reason to end. */
static int refused(struct rec_sideband *sb, struct rec_sideband_join *join, int rc,
                   const struct st_error *why, struct st_error *err)
{
    if (rc == ST_ENOMEM)
        return st_fail(err, rc, "%s", why->text);
    if (!sb->told_refused)
        st_log_warn("process %d came and is not recorded: %s (told once)", join->pid, why->text);
    sb->told_refused = true;
    join->refused = true;
    return 0;
}

static int attach_joined(struct rec_sideband *sb, struct rec_sideband_join *join, struct st_error *err)
{
    struct sideband_walk walk = {.sb = sb};
    struct st_error why = {0};
    int rc;

    join->known = rec_pid_set_has(&sb->pids, join->pid);
    if (join->known)
        return 0;
    rc = rec_each_thread_of(join->pid, sideband_attach_thread, &walk, &walk.rounds, &why);
    if (rc < 0)
        return refused(sb, join, rc, &why, err);
    if (rec_pid_set_add(&sb->pids, join->pid))
        return st_nomem(err, "the list of processes");
    return rec_clock_now(sb->clock, &join->time, err);
}

static int attach_all_joined(struct rec_sideband *sb, struct rec_sideband_join *list, size_t n,
                             struct st_error *err)
{
    int rc = rec_sideband_drain(sb, err);

    sweep(sb);
    sb->attached.n = sb->born.n = 0;
    sb->attaching = true;
    for (size_t i = 0; !rc && i < n; i++)
        rc = attach_joined(sb, &list[i], err);
    if (!rc)
        rc = sideband_drop_doubles(sb, err);
    sb->attaching = false;
    return rc;
}

static int describe_joined(struct rec_sideband *sb, const struct rec_sideband_join *list, size_t n,
                           struct st_error *err)
{
    struct st_confined child = {0};
    uint64_t now;
    int rc = rec_clock_now(sb->clock, &now, err);

    for (size_t i = 0; !rc && i < n; i++)
        if (!list[i].known && !list[i].refused)
            rc = rec_synth_joined(sb->store, &child, list[i].pid, list[i].time, sideband_state_id(sb), err);
    if (!rc)
        rc = sideband_describe_born(sb, &child, now, err);
    st_confined_close(&child);
    return rc;
}

int rec_sideband_join(struct rec_sideband *sb, struct rec_sideband_join *list, size_t n, struct st_error *err)
{
    int rc = sb->config.select ? expect(sb, list, n, err) : attach_all_joined(sb, list, n, err);

    return rc ? rc : describe_joined(sb, list, n, err);
}
