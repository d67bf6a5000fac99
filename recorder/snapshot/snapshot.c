/* Writes a snapshot. What perf needs to read Intel PT stands in tools/perf/util/intel-pt.c: AUXTRACE_INFO
 * before any trace, an event of the PMU with an id and times, an AUXTRACE a ring, and the side-band with
 * times. */
#include "recorder/snapshot/snapshot.h"
#include "base/progress.h"
#include "perfdata/writer.h"
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot_impl.h"
#include "triggers/trigger.h"

#include <stdlib.h>
#include <string.h>

/* Ids of events that no kernel event stands behind; the kernel counts its own from 1. */
static const uint64_t made_id = 1ull << 48;

/* `of`: whose ids it has; NULL: none but the one for records that are made here. */
static int add_group(struct snap *s, enum snap_event event, const struct perf_event_attr *attr,
                     const struct rec_fact_event *of, const char *name, struct st_error *err)
{
    size_t n = of ? of->ids.n : 0;
    uint64_t *ids = calloc(n + 1, sizeof(*ids));
    int rc;

    if (!ids)
        return st_nomem(err, "the ids of events");
    if (n)
        memcpy(ids, of->ids.at, n * sizeof(*ids));
    ids[n] = s->ids[event] = made_id + event;
    rc = pd_writer_add_event(s->w, attr, ids, n + 1, name, err);
    free(ids);
    return rc;
}

static int add_trace_event(struct snap *s, struct st_error *err)
{
    const struct rec_fact_event *trace = &s->in->facts->recorded.at[0];
    struct perf_event_attr attr = trace->attr;
    int rc;

    attr.sample_type |= REC_SAMPLE_TYPE;
    attr.sample_id_all = 1;
    rc = add_group(s, SNAP_TRACE, &attr, NULL, trace->name, err);
    return rc ? rc : pd_writer_pmu(s->w, attr.type, "intel_pt", err);
}

void rec_snapshot_stall_attr(struct perf_event_attr *attr)
{
    trg_output_attr(attr);
    attr->sample_type |= REC_SAMPLE_TYPE | PERF_SAMPLE_RAW;
    attr->sample_id_all = 1;
}

/* Of records that are made here: as of all others. */
static void set_clock(const struct rec_facts *facts, struct perf_event_attr *attr)
{
    attr->use_clockid = facts->group[REC_SIDEBAND_STATE].attr.use_clockid;
    attr->clockid = facts->group[REC_SIDEBAND_STATE].attr.clockid;
}

static int add_events(struct snap *s, uint64_t priv[PD_PT_PRIV_MAX], struct st_error *err)
{
    const struct rec_facts *facts = s->in->facts;
    const struct rec_fact_event *state = &facts->group[REC_SIDEBAND_STATE];
    const struct rec_fact_event *switches = &facts->group[REC_SIDEBAND_SWITCHES];
    const struct rec_fact_event *kernel = &facts->group[REC_SIDEBAND_KERNEL];
    struct perf_event_attr attr;
    int rc = facts->records ? snap_add_record_event(s, err) : add_trace_event(s, err);

    if (!rc)
        rc = add_group(s, SNAP_STATE, &state->attr, state, "dummy:u", err);
    rec_perf_dummy(&attr);
    set_clock(facts, &attr);
    attr.context_switch = 1;
    if (!rc)
        rc = add_group(s, SNAP_SWITCHES, &attr, switches, "dummy:u", err);
    rec_snapshot_stall_attr(&attr);
    set_clock(facts, &attr);
    attr.exclude_kernel = 1; /* of what is traced: else perf misses a map of the kernel */
    if (!rc)
        rc = add_group(s, SNAP_STALLS, &attr, &facts->stalls, ST_STALL_EVENT_NAME, err);
    rec_perf_dummy(&attr);
    set_clock(facts, &attr);
    attr.sample_type |= PERF_SAMPLE_RAW;
    if (!rc)
        rc = add_group(s, SNAP_META, &attr, NULL, ST_META_EVENT_NAME, err);
    if (!rc && kernel->ids.n)
        rc = add_group(s, SNAP_KERNEL, &kernel->attr, kernel, "dummy:u", err);
    if (!rc && facts->records)
        rc = snap_add_other_record_events(s, err);
    /* Whose the trace is: of a thread's own ring perf knows it, and takes no switch for it. */
    if (switches->ids.n && priv[PD_PT_PER_CPU_MMAPS])
        priv[PD_PT_HAVE_SCHED_SWITCH] = facts->all ? 3 : 2;
    return rc;
}

static int write_info(struct snap *s, const uint64_t priv[PD_PT_PRIV_MAX], struct st_error *err)
{
    uint64_t buffer[(sizeof(struct pd_auxtrace_info) + PD_PT_PRIV_MAX * sizeof(uint64_t)) /
                    sizeof(uint64_t)] = {0};
    struct pd_auxtrace_info *info = (struct pd_auxtrace_info *)buffer;
    struct pd_time_conv conv = {
        .header = {.type = PD_RECORD_TIME_CONV, .size = sizeof(conv)},
        .time_shift = priv[PD_PT_TIME_SHIFT],
        .time_mult = priv[PD_PT_TIME_MULT],
        .time_zero = priv[PD_PT_TIME_ZERO],
        .cap_user_time_zero = priv[PD_PT_CAP_USER_TIME_ZERO] != 0,
    };
    int rc = 0;

    info->header.type = PD_RECORD_AUXTRACE_INFO;
    info->header.size = sizeof(buffer);
    info->type = PD_AUXTRACE_INTEL_PT;
    memcpy(info->priv, priv, PD_PT_PRIV_MAX * sizeof(*priv));
    if (conv.cap_user_time_zero)
        rc = pd_writer_record(s->w, &conv.header, err);
    return rc ? rc : pd_writer_record(s->w, &info->header, err);
}

/* The processor's time stamp counter at a time of the perf clock, as perf converts it (perf_time_to_tsc() in
 * tools/perf/util/tsc.c); the time itself where no conversion is known. */
static uint64_t tsc_at(const uint64_t priv[PD_PT_PRIV_MAX], uint64_t time)
{
    uint64_t mult = priv[PD_PT_TIME_MULT], shift = priv[PD_PT_TIME_SHIFT];
    uint64_t since = time - priv[PD_PT_TIME_ZERO];

    return mult && shift < 64 ? (uint64_t)(((unsigned __int128)since << shift) / mult) : time;
}

/* Trace holds the lower 56 bits of the counter: decoders take the rest from `reference`. */
static int write_rings(struct snap *s, const uint64_t priv[PD_PT_PRIV_MAX], struct st_error *err)
{
    const struct rec_capture *c = s->in->capture;
    int rc = 0;

    for (size_t i = 0; !rc && i < c->rings.n; i++) {
        const struct rec_ring *r = &c->rings.at[i];
        struct pd_auxtrace head = {
            .offset = r->offset,
            .reference = tsc_at(priv, s->time) + i,
            .idx = r->idx,
            .tid = (uint32_t)r->tid,
            .cpu = (uint32_t)r->cpu,
        };

        if (r->size[0])
            rc = pd_writer_auxtrace(s->w, &head, r->part[0], r->size[0], NULL, 0, err);
    }
    return rc;
}

static int write_switch(struct snap *s, const struct rec_switch *sw, struct st_error *err)
{
    struct {
        struct perf_event_header header;

        struct rec_trailer trailer;
    } record = {
        .header = {.type = PERF_RECORD_SWITCH, .size = sizeof(record)},
        .trailer = {.pid = (uint32_t)sw->pid,
                    .tid = (uint32_t)sw->tid,
                    .time = sw->time,
                    .cpu = sw->cpu,
                    .id = s->ids[SNAP_SWITCHES]},
    };

    if (sw->out)
        record.header.misc |= PERF_RECORD_MISC_SWITCH_OUT;
    if (sw->out && sw->preempt)
        record.header.misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    return pd_writer_record(s->w, &record.header, err);
}

static int write_stored(struct snap *s, const struct perf_event_header *record, struct st_error *err)
{
    const struct rec_mmap2_record *map = (const struct rec_mmap2_record *)record;

    int rc;

    if (record->type != PERF_RECORD_MMAP2 || record->size <= sizeof(*map) + sizeof(struct rec_trailer))
        return pd_writer_record(s->w, record, err);
    rc = snap_write_map(s, map, err);
    return rc || !s->segments ? rc : snap_write_segments(s, map, err);
}

/* The kernel's records and the source's own switches, both in order, into one order. */
static int write_sideband(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err)
{
    const struct rec_capture *c = s->in->capture;
    size_t i = 0, k = 0;
    int rc = 0;

    while (!rc && (i < n || k < c->switches.n)) {
        if (k < c->switches.n && (i == n || c->switches.at[k].time < list[i].time))
            rc = write_switch(s, &c->switches.at[k++], err);
        else
            rc = write_stored(s, list[i++].record, err);
    }
    return rc;
}

int snap_write_sample(struct snap *s, enum snap_event event, const void *raw, size_t size,
                      struct st_error *err)
{
    struct pd_made_sample sample = {.time = s->time, .id = s->ids[event], .raw = raw, .raw_size = size};

    return pd_writer_sample(s->w, event, &sample, err);
}

static int write_all(struct snap *s, bool kernel, const struct rec_stored *list, size_t n,
                     struct st_error *err)
{
    uint64_t priv[PD_PT_PRIV_MAX];
    bool records = s->in->facts->records;
    int rc;

    memcpy(priv, s->in->facts->priv, sizeof(priv));
    rc = add_events(s, priv, err);

    if (!rc && !records)
        rc = write_info(s, priv, err);
    if (!rc && kernel)
        rc = snap_write_kernel(s, list, n, err);
    if (!rc && records)
        rc = snap_write_kernel_map(s, err);
    if (!rc)
        rc = records ? snap_write_records(s, err) : write_rings(s, priv, err);
    if (!rc)
        rc = snap_write_meta(s, err);
    if (!rc)
        rc = snap_write_names(s, list, n, err);
    if (!rc)
        rc = snap_write_vdsos(s, err);
    if (!rc)
        rc = write_sideband(s, list, n, err);
    if (!rc)
        rc = snap_write_room(s, err);
    if (!rc)
        rc = snap_write_build_ids(s, list, n, err);
    return rc ? rc : pd_writer_cmdline(s->w, s->in->argc, s->in->argv, err);
}

/* Most of it. */
static uint64_t bytes_to_write(const struct rec_snapshot *in, const struct rec_stored *list, size_t n)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < in->capture->rings.n; i++)
        bytes += in->capture->rings.at[i].size[0] + in->capture->rings.at[i].size[1];
    for (size_t i = 0; i < n; i++)
        bytes += list[i].record->size;
    return bytes;
}

/* Gives the file its name, or drops it, for the error `rc`. */
static int end_writing(struct pd_writer *w, int rc, struct rec_written *file, struct st_error *err)
{
    struct stat st = {0};

    if (!rc)
        rc = pd_writer_stat(w, &st, err);
    if (file)
        *file = (struct rec_written){.dev = st.st_dev, .ino = st.st_ino};
    if (!rc)
        return pd_writer_commit(w, err);
    pd_writer_abort(w);
    return rc;
}

int rec_snapshot_write(const struct rec_snapshot *in, const char *path, struct rec_written *file,
                       struct st_error *err)
{
    struct snap s = {.in = in,
                     .time = in->capture->how.done_time,
                     .segments = snap_wants_segments(in->facts),
                     .code = {.parent = -1, .fd = -1}};
    struct rec_stored *list = NULL;
    bool kernel = snap_wants_kernel(in->facts);
    size_t n = in->facts->sideband.n;
    int rc = rec_view_sorted(&in->facts->sideband, &list, err);

    if (!rc)
        rc = snap_list_processes(&s, list, n, err);
    if (!rc)
        rc = in->folder < 0 ? pd_writer_open(path, kernel, &s.w, err)
                            : pd_writer_open_at(in->folder, path, kernel, &s.w, err);
    if (!rc) {
        st_progress("writing the snapshot", bytes_to_write(in, list, n));
        snap_copy_code(&s, path);
        rc = end_writing(s.w, write_all(&s, kernel, list, n, err), file, err);
        st_progress_end();
    }
    if (rc)
        rec_code_files_abort(&s.code);
    rec_code_files_free(&s.code);
    st_confined_close(&s.child);
    st_vec_free(&s.pids);
    free(list);
    return rc;
}
