/* What keeps a recording without an end from filling the disk, or falling ever further behind. */
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "recorder/arm/arm.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
    A_MINUTE = 60,   /* traps; so many may come at once */
    LOOK_AGAIN = 250 /* ms, while there is no room */
};

static const uint64_t token_ns = 60ull * 1000000000 / A_MINUTE;

/* Bytes free for us where the snapshots go. */
static int disk_free(const struct arm *arm, uint64_t *bytes)
{
    struct statvfs fs;

    if (fstatvfs(arm->folder, &fs))
        return -1;
    *bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return 0;
}

void arm_limits_set(struct arm *arm)
{
    const struct arm_options *o = &arm->options;
    struct arm_limits *l = &arm->limits;
    bool endless = o->triggers && !o->snapshots;
    uint64_t bytes;

    l->waiting = endless && !o->no_decode ? ARM_MOST_WAITING : 0;
    l->rate = endless && !o->cooldown_given;
    l->tokens = A_MINUTE;
    l->refilled = st_mono_ns();
    l->keep_free = o->keep_free != UINT64_MAX ? o->keep_free : 0;
    if (endless && o->keep_free == UINT64_MAX && !disk_free(arm, &bytes))
        l->keep_free = bytes / 4 * 3;
}

void arm_limits_describe(const struct arm *arm, char *text, size_t size)
{
    const struct arm_limits *l = &arm->limits;
    char amount[32], rate[48] = "", waiting[64] = "", disk[64] = "";

    *text = '\0';
    if (l->rate)
        snprintf(rate, sizeof(rate), ", %d traps a minute", A_MINUTE);
    if (l->waiting)
        snprintf(waiting, sizeof(waiting), ", %u snapshots waiting to be decoded", l->waiting);
    if (l->keep_free)
        snprintf(disk, sizeof(disk), ", %s of the disk kept free",
                 st_format_size(l->keep_free, amount, sizeof(amount)));
    if (*rate || *waiting || *disk)
        snprintf(text, size, "; limits: %s%s%s",
                 (*rate      ? rate
                  : *waiting ? waiting
                             : disk) +
                     2,
                 *rate ? waiting : "", *rate || *waiting ? disk : "");
}

/* Whether there is room for one more snapshot. That there is none is said once, when it begins. */
static bool has_room(struct arm *arm)
{
    struct arm_limits *l = &arm->limits;
    uint64_t bytes;
    char have[32], want[32];

    if (l->keep_free && !disk_free(arm, &bytes) && bytes < l->keep_free) {
        if (!l->told)
            st_log_warn("nothing fires while only %s are free on the disk of '%s' (--keep-free %s)",
                        st_format_size(bytes, have, sizeof(have)), arm->options.prefix,
                        st_format_size(l->keep_free, want, sizeof(want)));
        l->told = true;
        return false;
    }
    if (l->waiting && rec_jobs_waiting(arm->jobs) + rec_clerk_busy(arm->clerk) >= l->waiting) {
        if (!l->told)
            st_log_warn("nothing fires while %u snapshots wait to be decoded", l->waiting);
        l->told = true;
        return false;
    }
    l->told = false;
    return rec_clerk_busy(arm->clerk) < ARM_MOST_WRITING;
}

/* ns until the next trap may come. */
static uint64_t rate_wait(struct arm_limits *l)
{
    uint64_t now = st_mono_ns(), more = (now - l->refilled) / token_ns;

    if (!l->rate)
        return 0;
    l->tokens = l->tokens + more < A_MINUTE ? l->tokens + (unsigned)more : A_MINUTE;
    l->refilled += more * token_ns;
    return l->tokens ? 0 : l->refilled + token_ns - now;
}

/* Until there is room, and the time is over for which nothing may fire. */
static int hold(struct arm *arm, struct st_error *err)
{
    struct arm_limits *l = &arm->limits;
    uint64_t wait = rate_wait(l), now = st_mono_ns(), ns = l->cooled > now ? l->cooled - now : 0;

    l->holding = !has_room(arm);
    wait = l->holding ? UINT64_MAX : wait > ns ? wait : ns;
    l->until = wait > UINT64_MAX - st_mono_ns() ? UINT64_MAX : st_mono_ns() + wait;
    if (trg_hold(arm->options.triggers, wait, err))
        return err->code;
    return l->holding ? rec_timer_set(l->timer.fd, LOOK_AGAIN * 1000000ull, 0, err) : 0;
}

bool arm_limits_hold(const struct arm *arm)
{
    return arm->limits.until == UINT64_MAX || st_mono_ns() < arm->limits.until;
}

int arm_limits_next(struct arm *arm, bool trapped, struct st_error *err)
{
    if (trapped && arm->limits.tokens)
        arm->limits.tokens--;
    arm->limits.cooled = st_mono_ns() + arm->options.cooldown;
    return hold(arm, err);
}

int arm_limits_start(struct arm *arm, struct st_error *err)
{
    arm->limits.cooled = st_mono_ns() + arm->options.warm_up;
    return hold(arm, err);
}

int arm_limits_again(struct arm *arm, struct st_error *err)
{
    /* A snapshot that is pending asks again when it is taken. */
    return arm->state == ARM_ARMED && arm->limits.holding ? hold(arm, err) : 0;
}

int arm_on_limits(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;

    rec_timer_clear(arm->limits.timer.fd);
    return arm_limits_again(arm, err);
}
