/* What the triggers wrote, and whether it is a trap. */
#include "base/log.h"
#include "base/safetext.h"
#include "recorder/arm.h"
#include "recorder/perf_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What only user space can add to a record that fired, in both of its copies. */
static void complete(struct arm *arm, struct st_stall_record *stall, void *in_record)
{
    trg_complete(arm->options.triggers, stall);
    memcpy(in_record, stall, sizeof(*stall));
    if (arm->cause.reason == ARM_TRIGGER && arm->cause.record.seq == stall->seq)
        arm->cause.record = *stall;
}

static int take_record(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    struct arm *arm = ctx;
    uint64_t raw[REC_RAW_WORDS];
    const struct st_stall_record *stall;
    size_t at;
    uint32_t size = rec_sample_raw(record, raw, &at);
    int rc = size ? trg_record(raw, size, &stall, err) : 0;

    if (rc < 0)
        st_log_warn("a trigger wrote a record that is broken: %s", err->text);
    if (rc == 1 && (stall->flags & ST_STALL_FIRED)) {
        rc = arm_want(arm, ARM_TRIGGER, stall, err);
        if (rc)
            return rc;
        /* The record is the drain's own copy. */
        complete(arm, (struct st_stall_record *)raw, (char *)record + at);
    }
    return rec_store_add(arm->store, record, rec_record_time(record), err);
}

int arm_drain_stalls(struct arm *arm, struct st_error *err)
{
    return rec_group_drain(&arm->stalls, take_record, arm, err);
}

int arm_on_stalls(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;
    int rc = arm_drain_stalls(arm, err);

    if (!rc && arm->cause.reason == ARM_TRIGGER && !arm->options.after)
        rc = arm_take(arm, err);
    return rc;
}

/* A trap: the rings stop before anything else is done. */
static int trap(struct arm *arm, const struct st_stall_record *record, struct st_error *err)
{
    struct arm_cause *c = &arm->cause;
    int rc = arm->options.after ? 0 : arm_freeze(arm, err);

    *c = (struct arm_cause){.reason = ARM_TRIGGER, .record = *record};
    arm->traps++;
    if (!rc)
        rc = trg_hold(arm->options.triggers, UINT64_MAX, err);
    if (rc || !arm->options.after)
        return rc; /* whoever drains takes the snapshot, when the ring is empty */
    return rec_timer_set(arm->after.fd, arm->options.after, 0, err);
}

int arm_want(struct arm *arm, enum arm_reason reason, const struct st_stall_record *record,
             struct st_error *err)
{
    struct arm_cause *c = &arm->cause;

    if (!arm->live)
        return 0;
    if (reason == ARM_INTERRUPT || reason == ARM_END)
        arm->finish = true;
    if (reason == ARM_TRIGGER)
        return c->reason == ARM_NONE ? trap(arm, record, err) : 0;
    if (c->reason != ARM_NONE && !arm->finish)
        return 0;
    if (c->reason == ARM_NONE)
        *c = (struct arm_cause){.reason = reason};
    return arm_take(arm, err);
}
