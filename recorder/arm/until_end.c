/* --until-end: between a trap and its snapshot, a stall that still goes on is watched until it ends. What was
 * recorded before it is safe meanwhile: it is copied at once, or the source goes on as long as its rings have
 * room; so the snapshot knows how long the stall took, who ended it, and what was done meanwhile. */
#include "base/clock.h"
#include "base/log.h"
#include "base/stall_complete.h"
#include "base/units.h"
#include "recorder/arm/arm.h"

enum { LOOK_EVERY = 20 /* ms: whether the rings have room */ };

bool arm_end_awaited(const struct arm *arm, const struct st_stall_record *record)
{
    return arm->options.until_end && !arm->finish && record->flags & ST_STALL_ONGOING;
}

bool arm_records_on(const struct arm *arm, const struct st_stall_record *record)
{
    return arm->options.after || (arm_end_awaited(arm, record) && arm->ops->has_room);
}

void arm_end_told(struct arm *arm, const struct st_stall_record *record)
{
    if (arm->cause.reason == ARM_TRIGGER && st_stall_completes(&arm->cause.record, record))
        st_stall_complete(&arm->cause.record, record);
}

void arm_end_forget(struct arm *arm)
{
    if (arm->waits == ARM_FOR_STALL)
        arm->waits = ARM_FOR_NOTHING;
    rec_timer_set(arm->end.timer.fd, 0, 0, NULL);
}

/* Where the source cannot go on without losing what it held, that is copied. */
static int begin(struct arm *arm, struct st_error *err)
{
    char most[24];

    if (arm->ops->has_room && arm->state == ARM_DELAY)
        arm->ops->mark(arm->source);
    else if (arm_capture(arm, err))
        return arm_take_failed(arm, err);
    arm->waits = ARM_FOR_STALL;
    arm->end.until = st_mono_ns() + arm->options.until_end;
    st_log_debug("the stall goes on: its end is awaited, %s at most",
                 st_format_duration((int64_t)arm->options.until_end, most, sizeof(most)));
    return rec_timer_set(arm->end.timer.fd, LOOK_EVERY * 1000000ull, LOOK_EVERY * 1000000ull, err);
}

int arm_take_at_end(struct arm *arm, struct st_error *err)
{
    /* The actions that come before the snapshot run once the waiting is over. */
    if (arm->waits == ARM_FOR_ACTIONS || !arm_end_awaited(arm, &arm->cause.record))
        return arm_take(arm, err);
    return arm->waits == ARM_FOR_STALL ? 0 : begin(arm, err);
}

/* What they hold is safe, and what comes now is not recorded in this snapshot. */
static int copy_full(struct arm *arm, struct st_error *err)
{
    if (arm_capture(arm, err))
        return arm_take_failed(arm, err);
    st_log_debug("the rings have no room left: what they hold was copied");
    return 0;
}

int arm_on_end_timer(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;

    rec_timer_clear(arm->end.timer.fd);
    if (arm->waits != ARM_FOR_STALL)
        return 0;
    if (st_mono_ns() >= arm->end.until)
        return arm_take(arm, err);
    return arm->state == ARM_CAPTURED || arm->ops->has_room(arm->source) ? 0 : copy_full(arm, err);
}
