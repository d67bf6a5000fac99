/* What the triggers wrote, and whether it is a trap. */
#include "base/log.h"
#include "base/safetext.h"
#include "recorder/arm/arm.h"
#include "recorder/perf/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds what only user space can to a record that fired, and stores it. The record is ours to change. */
static int store_completed(struct arm *arm, struct perf_event_header *record, struct st_error *err)
{
    uint64_t raw[REC_RAW_WORDS];
    struct st_stall_record *stall = (struct st_stall_record *)raw;
    size_t at;

    rec_sample_raw(record, raw, &at);
    trg_complete(arm->options.triggers, stall);
    memcpy((char *)record + at, stall, sizeof(*stall));
    if (arm->cause.reason == ARM_TRIGGER && arm->cause.record.seq == stall->seq) {
        arm->cause.record = *stall;
        arm->frames = *trg_frames(arm->options.triggers);
    }
    return rec_store_add(arm->store, record, rec_record_time(record), err);
}

/* What completes a record is in /proc and in BPF iterators, and takes milliseconds: nothing of the target is
 * recorded while the rings are stopped. */
static int put_off(struct arm *arm, const struct perf_event_header *record, struct st_error *err)
{
    struct perf_event_header *copy = malloc(record->size);

    if (copy)
        memcpy(copy, record, record->size);
    if (copy && !st_vec_push(&arm->incomplete, copy))
        return 0;
    free(copy);
    return st_nomem(err, "a stall record");
}

int arm_complete_stalls(struct arm *arm, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < arm->incomplete.n; i++) {
        if (!rc)
            rc = store_completed(arm, arm->incomplete.at[i], err);
        free(arm->incomplete.at[i]);
    }
    arm->incomplete.n = 0;
    return rc;
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
        return arm->state == ARM_FROZEN ? put_off(arm, record, err)
                                        : store_completed(arm, (struct perf_event_header *)record, err);
    }
    if (rc == 1 && stall->flags & ST_STALL_COMPLETION) {
        arm_end_told(arm, stall);
        rc = arm_late_end(arm, record, stall, err);
        if (rc)
            return rc;
    } else if (rc == 1 && arm->state != ARM_OFF) {
        arm->traps.without++;
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
        rc = arm_take_at_end(arm, err);
    return rc;
}

/* A trap: the rings stop before anything else is done. */
static int trap(struct arm *arm, const struct st_stall_record *record, struct st_error *err)
{
    struct arm_cause *c = &arm->cause;
    int rc;

    arm_moves(arm, ARM_WANT);
    rc = arm_records_on(arm, record) ? 0 : arm_freeze(arm, record, err);

    *c = (struct arm_cause){.reason = ARM_TRIGGER, .record = *record};
    arm->traps.fired++;
    if (!rc)
        rc = trg_hold(arm->options.triggers, UINT64_MAX, err);
    if (rc || !arm->options.after)
        return rc; /* whoever drains takes the snapshot, when the ring is empty */
    return rec_timer_set(arm->after.fd, arm->options.after, 0, err);
}

int arm_want(struct arm *arm, enum arm_reason reason, const struct st_stall_record *record,
             struct st_error *err)
{
    bool pending = arm_state_pending(arm->state);
    struct arm_cause *c = &arm->cause;

    if (!arm_state_live(arm->state)) {
        arm->traps.without += reason == ARM_TRIGGER && arm->state != ARM_OFF;
        return 0;
    }
    if (reason == ARM_INTERRUPT || reason == ARM_END || reason == ARM_TIMEOUT)
        arm->finish = true;
    if (reason == ARM_TRIGGER) {
        if (!pending && !arm_limits_hold(arm))
            return trap(arm, record, err);
        arm->traps.without++;
        return 0;
    }
    if (pending && !arm->finish)
        return 0;
    if (!pending) {
        *c = (struct arm_cause){.reason = reason};
        arm_moves(arm, ARM_WANT);
    }
    /* It is taken when one of those that are being written is there. */
    if (!arm->finish && rec_clerk_busy(arm->clerk) >= ARM_MOST_WRITING)
        return 0;
    return arm_take(arm, err);
}
