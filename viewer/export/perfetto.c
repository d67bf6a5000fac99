/* Perfetto's protobuf trace: track events (perfetto: protos/perfetto/trace/track_event/track_event.proto,
 * track_descriptor.proto, trace/trace_packet.proto, interned_data/interned_data.proto). */
#include "base/safetext.h"
#include "tracedb/tracedb.h"
#include "viewer/export/export.h"
#include "viewer/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers of those files. */
enum {
    TRACE_PACKET = 1,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK = 60,
    INTERNED_CATEGORIES = 1,
    INTERNED_NAMES = 2,
    ENTRY_IID = 1,
    ENTRY_NAME = 2,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_FLOW = 47,
    EVENT_LAST_OF_FLOW = 48,
    ANNOTATION_INT = 4,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };

/* A track's uuid: what kind it is of, and the id. */
enum kind { K_PROCESS = 1, K_THREAD, K_OFF, K_GAP, K_STALL, K_CPU, K_TRACE };

struct state {
    struct vw_pb packet, event, sub, entry;

    uint64_t last_name, last_category; /* iids given so far */

    ST_VEC(uint64_t) seen; /* uuids of the tracks that were described */

    const struct vw_export_thread *thread;
};

static uint64_t uuid(enum kind kind, int64_t id)
{
    return (uint64_t)kind << 48 | ((uint64_t)id & 0xffffffffffff);
}

/* Ends the packet that is in st->packet and writes it. */
static int put_packet(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;

    vw_pb_varint(&st->packet, PACKET_SEQUENCE_ID, 1);
    vw_pb_message(&st->entry, TRACE_PACKET, &st->packet);
    if (st->entry.failed)
        return st_nomem(err, "the export");
    fwrite(st->entry.bytes.at, 1, st->entry.bytes.n, x->out);
    st->entry.bytes.n = 0;
    return ferror(x->out) ? st_fail_errno(err, ST_EFAIL, "cannot write the export") : 0;
}

static void put_safe(struct vw_pb *m, uint32_t field, const char *text)
{
    char safe[4096];

    st_safe_text(safe, sizeof(safe), text);
    vw_pb_string(m, field, safe);
}

static int put_track(struct vw_export *x, struct vw_pb *track, struct st_error *err)
{
    struct state *st = x->state;

    vw_pb_message(&st->packet, PACKET_TRACK, track);
    return put_packet(x, err);
}

/* Whether a track was described before; it is from now on. The latest are asked for most. */
static bool seen(struct state *st, uint64_t id)
{
    for (size_t i = st->seen.n; i > 0; i--)
        if (st->seen.at[i - 1] == id)
            return true;
    if (st_vec_push(&st->seen, id)) {
        st->entry.failed = true;
        return true;
    }
    return false;
}

/* A track with a name below another one, described once. */
static int named_track(struct vw_export *x, uint64_t id, uint64_t parent, const char *name,
                       struct st_error *err)
{
    struct state *st = x->state;

    if (seen(st, id))
        return 0;
    vw_pb_varint(&st->sub, TRACK_UUID, id);
    if (parent)
        vw_pb_varint(&st->sub, TRACK_PARENT, parent);
    put_safe(&st->sub, TRACK_NAME, name);
    return put_track(x, &st->sub, err);
}

static int process_track(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;

    if (seen(st, uuid(K_PROCESS, t->process_id)))
        return 0;
    vw_pb_varint(&st->sub, TRACK_UUID, uuid(K_PROCESS, t->process_id));
    vw_pb_varint(&st->event, PROCESS_PID, (uint64_t)t->pid);
    put_safe(&st->event, PROCESS_NAME, t->process);
    vw_pb_message(&st->sub, TRACK_PROCESS, &st->event);
    return put_track(x, &st->sub, err);
}

static int thread_track(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;
    int rc = process_track(x, t, err);

    if (rc || seen(st, uuid(K_THREAD, t->id)))
        return rc;
    vw_pb_varint(&st->sub, TRACK_UUID, uuid(K_THREAD, t->id));
    vw_pb_varint(&st->sub, TRACK_PARENT, uuid(K_PROCESS, t->process_id));
    vw_pb_varint(&st->event, THREAD_PID, (uint64_t)t->pid);
    vw_pb_varint(&st->event, THREAD_TID, (uint64_t)t->tid);
    put_safe(&st->event, THREAD_NAME, t->name);
    vw_pb_message(&st->sub, TRACK_THREAD, &st->event);
    return put_track(x, &st->sub, err);
}

/* Starts st->event; end_event writes it. */
static struct vw_pb *event(struct vw_export *x, int type, uint64_t track)
{
    struct state *st = x->state;

    vw_pb_varint(&st->event, EVENT_TYPE, (uint64_t)type);
    vw_pb_varint(&st->event, EVENT_TRACK, track);
    return &st->event;
}

static int end_event(struct vw_export *x, int64_t time, struct st_error *err)
{
    struct state *st = x->state;

    vw_pb_varint(&st->packet, PACKET_TIMESTAMP, (uint64_t)time);
    vw_pb_varint(&st->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
    vw_pb_message(&st->packet, PACKET_TRACK_EVENT, &st->event);
    return put_packet(x, err);
}

static void annotate(struct state *st, const char *name, const char *text)
{
    vw_pb_string(&st->sub, ANNOTATION_NAME, name);
    put_safe(&st->sub, ANNOTATION_STRING, text);
    vw_pb_message(&st->event, EVENT_ANNOTATION, &st->sub);
}

static int begin(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;

    vw_pb_varint(&st->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    return put_packet(x, err);
}

/* Names stand once in the file: the packet that uses one first defines it. */
static void intern(struct state *st, uint32_t field, int64_t *iid, uint64_t *last, const char *name)
{
    if (*iid >= 0)
        return;
    *iid = (int64_t)++ * last;
    vw_pb_varint(&st->entry, ENTRY_IID, *last);
    put_safe(&st->entry, ENTRY_NAME, name);
    vw_pb_message(&st->sub, field, &st->entry);
}

static void put_call_event(struct state *st, const struct vw_export_call *c)
{
    const unsigned worth_telling = TDB_CALL_NO_CALL | TDB_CALL_NO_RETURN | TDB_CALL_TAIL | TDB_CALL_SAMPLED;

    vw_pb_varint(&st->event, EVENT_CATEGORY_IID, (uint64_t)c->symbol->module->index);
    vw_pb_varint(&st->event, EVENT_NAME_IID, (uint64_t)c->symbol->index);
    if (c->flags & worth_telling) {
        vw_pb_string(&st->sub, ANNOTATION_NAME, "flags");
        vw_pb_varint(&st->sub, ANNOTATION_INT, c->flags & 255);
        vw_pb_message(&st->event, EVENT_ANNOTATION, &st->sub);
    }
}

static int enter(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    intern(st, INTERNED_CATEGORIES, &c->symbol->module->index, &st->last_category, c->symbol->module->name);
    intern(st, INTERNED_NAMES, &c->symbol->index, &st->last_name, c->symbol->name);
    if (st->sub.bytes.n)
        vw_pb_message(&st->packet, PACKET_INTERNED, &st->sub);
    event(x, SLICE_BEGIN, uuid(K_THREAD, st->thread->id));
    put_call_event(st, c);
    return end_event(x, c->start, err);
}

static int leave(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    event(x, SLICE_END, uuid(K_THREAD, st->thread->id));
    return end_event(x, c->end, err);
}

static int thread_begin(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;

    st->thread = t;
    return thread_track(x, t, err);
}

/* A slice with a name of its own, on a track that is not a thread's. */
static int put_slice(struct vw_export *x, uint64_t track, const char *category, const char *name,
                     const struct vw_export_span *s, struct st_error *err)
{
    struct vw_pb *m = event(x, SLICE_BEGIN, track);
    int rc;

    vw_pb_string(m, EVENT_CATEGORY, category);
    put_safe(m, EVENT_NAME, name);
    if (s->detail)
        annotate(x->state, "detail", s->detail);
    rc = end_event(x, s->start, err);
    if (rc)
        return rc;
    event(x, SLICE_END, track);
    return end_event(x, s->end, err);
}

static int off(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    uint64_t track = uuid(K_OFF, s->thread->id);
    int rc = named_track(x, track, uuid(K_THREAD, s->thread->id), "off-CPU", err);

    return rc ? rc : put_slice(x, track, "off-CPU", s->text, s, err);
}

static int slice(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    uint64_t track = uuid(K_CPU, s->cpu);
    char name[32], label[320];
    int rc;

    snprintf(name, sizeof(name), "CPU %lld", (long long)s->cpu);
    rc = named_track(x, track, 0, name, err);
    if (rc || !s->thread)
        return rc;
    return put_slice(x, track, "CPU", vw_export_thread_label(s->thread, label, sizeof(label)), s, err);
}

static int gap(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    uint64_t track = uuid(K_GAP, s->thread ? s->thread->id : 0);
    int rc = s->thread ? thread_track(x, s->thread, err) : 0;

    if (!rc)
        rc = named_track(x, track, s->thread ? uuid(K_THREAD, s->thread->id) : 0, "gaps", err);
    return rc ? rc : put_slice(x, track, "gap", s->text ? s->text : "", s, err);
}

static int mark(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    uint64_t track = s->thread ? uuid(K_THREAD, s->thread->id) : uuid(K_TRACE, 1);
    struct vw_pb *m;
    int rc = s->thread ? thread_track(x, s->thread, err) : named_track(x, track, 0, "marks", err);

    if (rc)
        return rc;
    m = event(x, INSTANT, track);
    vw_pb_string(m, EVENT_CATEGORY, "mark");
    put_safe(m, EVENT_NAME, s->text ? s->text : "");
    if (s->detail)
        annotate(x->state, "detail", s->detail);
    return end_event(x, s->start, err);
}

/* The arrow from the waker to the woken thread: one instant on each, tied by a flow. */
static int put_wake(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    char label[320], name[340];
    struct vw_pb *m;
    int rc = thread_track(x, s->waker, err);

    if (rc)
        return rc;
    m = event(x, INSTANT, uuid(K_THREAD, s->waker->id));
    vw_pb_string(m, EVENT_CATEGORY, "wake");
    snprintf(name, sizeof(name), "wakes %s", vw_export_thread_label(s->thread, label, sizeof(label)));
    vw_pb_string(m, EVENT_NAME, name);
    vw_pb_fixed64(m, EVENT_FLOW, (uint64_t)s->id);
    rc = end_event(x, s->wake, err);
    if (rc)
        return rc;
    m = event(x, INSTANT, uuid(K_THREAD, s->thread->id));
    vw_pb_string(m, EVENT_CATEGORY, "wake");
    snprintf(name, sizeof(name), "woken by %s", vw_export_thread_label(s->waker, label, sizeof(label)));
    vw_pb_string(m, EVENT_NAME, name);
    vw_pb_fixed64(m, EVENT_LAST_OF_FLOW, (uint64_t)s->id);
    return end_event(x, s->end, err);
}

static int stall(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    uint64_t track = uuid(K_STALL, s->thread ? s->thread->id : 0);
    int rc = s->thread ? thread_track(x, s->thread, err) : 0;

    if (!rc)
        rc = named_track(x, track, s->thread ? uuid(K_THREAD, s->thread->id) : 0, "stalls", err);
    if (!rc)
        rc = put_slice(x, track, "stall", s->text ? s->text : "", s, err);
    if (!rc && s->thread && s->waker && s->wake >= x->from && s->wake < x->to)
        rc = put_wake(x, s, err);
    return rc;
}

static void release(struct vw_export *x)
{
    struct state *st = x->state;

    vw_pb_free(&st->packet);
    vw_pb_free(&st->event);
    vw_pb_free(&st->sub);
    vw_pb_free(&st->entry);
    st_vec_free(&st->seen);
}

const struct vw_export_ops vw_export_perfetto = {
    .name = "perfetto",
    .help = "Perfetto's protobuf (ui.perfetto.dev, trace_processor)",
    .binary = true,
    .state_size = sizeof(struct state),
    .begin = begin,
    .thread_begin = thread_begin,
    .enter = enter,
    .leave = leave,
    .off = off,
    .slice = slice,
    .gap = gap,
    .mark = mark,
    .stall = stall,
    .release = release,
};
