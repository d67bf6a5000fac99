/* Stalls that outlasted --until-end: their snapshots were written while they went on. When such a stall ends,
 * and arm still runs, its end is put into the snapshot, which is decoded again. */
#include "base/folder.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/safetext.h"
#include "base/stall_complete.h"
#include "recorder/arm/order.h"
#include "recorder/perf/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_open(struct arm_open_stall *o)
{
    free(o->data);
    free(o->db);
    free(o->reason);
    free(o->end);
}

static void forget(struct arm *arm, size_t i)
{
    struct arm_open_stall *all = arm->open_stalls.at;

    free_open(&all[i]);
    memmove(&all[i], &all[i + 1], (--arm->open_stalls.n - i) * sizeof(*all));
}

void arm_forget_open(struct arm *arm)
{
    for (size_t i = 0; i < arm->open_stalls.n; i++)
        free_open(&arm->open_stalls.at[i]);
    st_vec_free(&arm->open_stalls);
}

int arm_leave_open(struct arm *arm, const struct arm_order *order, struct st_error *err)
{
    struct arm_open_stall o = {.record = order->cause.record, .trap = order->trap, .order = order};

    if (order->last || order->cause.reason != ARM_TRIGGER || !(o.record.flags & ST_STALL_ONGOING))
        return 0;
    if (arm->open_stalls.n == ARM_MOST_OPEN)
        forget(arm, 0);
    return st_vec_push(&arm->open_stalls, o) ? st_nomem(err, "the list of stalls that go on") : 0;
}

static void tell_end(struct arm *arm, const struct arm_open_stall *o)
{
    char text[512], safe[sizeof(arm->cause.text)];

    arm_describe(arm, &o->record, text, sizeof(text));
    st_safe_text(safe, sizeof(safe), text);
    st_progress_hide();
    printf("trap %u has ended: %s\n", o->trap, safe);
    fflush(stdout);
}

/* The snapshot that is decoded already is decoded again; one that waits for it has the end by then. */
static int complete(struct arm *arm, struct arm_open_stall *o, const struct perf_event_header *record,
                    const struct st_stall_record *end, struct st_error *err)
{
    struct st_error why = {0};
    int rc;

    arm_load_kallsyms(arm);
    rc = rec_room_fill(&o->room, arm->folder, st_folder_name(o->data), record, arm->kallsyms, &why);
    if (rc == ST_ENOMEM)
        return st_fail(err, rc, "%s", why.text);
    if (rc < 0)
        st_log_warn("the end of trap %u is not in %s: %s; the next snapshot has it", o->trap, o->data,
                    why.text);
    if (rc > 0)
        st_log_debug("the end of trap %u is not in %s: the file has gone", o->trap, o->data);
    if (rc)
        return 0;
    st_stall_complete(&o->record, end);
    tell_end(arm, o);
    rc = rec_jobs_add(arm->jobs, o->data, o->db, &o->room.file, o->reason,
                      REC_JOB_AGAIN | (arm->at_end || arm->finish ? 0 : REC_JOB_BESIDE), err);
    /* A snapshot that is pending comes first: then the jobs go on. */
    return rc || arm->finish || arm->state != ARM_ARMED ? rc : rec_jobs_go(arm->jobs, err);
}

/* The file is not there yet. */
static int keep_end(struct arm_open_stall *o, const struct perf_event_header *record, struct st_error *err)
{
    if (o->end)
        return 0;
    o->end = malloc(record->size);
    if (!o->end)
        return st_nomem(err, "the end of a stall");
    memcpy(o->end, record, record->size);
    return 0;
}

int arm_late_end(struct arm *arm, const struct perf_event_header *record, const struct st_stall_record *end,
                 struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < arm->open_stalls.n; i++) {
        struct arm_open_stall *o = &arm->open_stalls.at[i];

        if (!st_stall_completes(&o->record, end))
            continue;
        if (o->order)
            return keep_end(o, record, err);
        rc = complete(arm, o, record, end, err);
        forget(arm, i);
        break;
    }
    return rc;
}

static int complete_kept(struct arm *arm, struct arm_open_stall *o, struct st_error *err)
{
    uint64_t raw[REC_RAW_WORDS];
    const struct st_stall_record *end;
    size_t at;
    uint32_t size = rec_sample_raw(o->end, raw, &at);

    return trg_record(raw, size, &end, err) == 1 ? complete(arm, o, o->end, end, err) : 0;
}

static int take_names(struct arm_open_stall *o, const struct arm_order *order, struct st_error *err)
{
    o->order = NULL;
    o->data = strdup(order->data);
    o->db = strdup(order->db);
    o->reason = strdup(order->snapshot.trigger);
    o->room = order->room;
    return o->data && o->db && o->reason ? 0 : st_nomem(err, "the list of stalls that go on");
}

int arm_open_written(struct arm *arm, const struct arm_order *order, struct st_error *err)
{
    for (size_t i = 0; i < arm->open_stalls.n; i++) {
        struct arm_open_stall *o = &arm->open_stalls.at[i];
        int rc = 0;

        if (o->order != order)
            continue;
        if (!order->rc && order->room.size)
            rc = take_names(o, order, err);
        if (!rc && !o->order && o->end)
            rc = complete_kept(arm, o, err);
        if (rc || o->order || o->end)
            forget(arm, i);
        return rc;
    }
    return 0;
}
