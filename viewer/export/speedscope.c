/* speedscope's file format: an evented profile a thread (speedscope: src/lib/file-format-spec.ts). */
#include "base/vec.h"
#include "viewer/export/export.h"
#include "viewer/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OFF_CPU_FRAME = 0 };

struct state {
    ST_VEC(struct vw_export_symbol *) frames; /* in the order of their numbers, from 1 */

    bool any_profile, any_event;

    bool is_off;

    int64_t last; /* no event goes back behind it */
};

static int check(struct vw_export *x, struct st_error *err)
{
    return ferror(x->out) ? st_fail_errno(err, ST_EFAIL, "cannot write the export") : 0;
}

static int begin(struct vw_export *x, struct st_error *err)
{
    fputs("{\"$schema\":\"https://www.speedscope.app/"
          "file-format-schema.json\",\"exporter\":\"stalltrap@" ST_VERSION "\",\"name\":",
          x->out);
    vw_json_string(x->out, x->title, strlen(x->title));
    fputs(",\"activeProfileIndex\":0,\"profiles\":[", x->out);
    return check(x, err);
}

static void put_event(struct vw_export *x, char type, int64_t frame, int64_t at)
{
    struct state *st = x->state;

    if (at < st->last)
        at = st->last;
    st->last = at;
    fprintf(x->out, "%s{\"type\":\"%c\",\"frame\":%" PRId64 ",\"at\":%" PRId64 "}", st->any_event ? "," : "",
            type, frame, at);
    st->any_event = true;
}

static int thread_begin(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;
    char label[320];

    fprintf(x->out, "%s\n{\"type\":\"evented\",\"name\":", st->any_profile ? "," : "");
    vw_export_thread_label(t, label, sizeof(label));
    vw_json_string(x->out, label, strlen(label));
    fprintf(x->out,
            ",\"unit\":\"nanoseconds\",\"startValue\":%" PRId64 ",\"endValue\":%" PRId64 ",\"events\":[",
            x->from, x->to);
    st->any_profile = true;
    st->any_event = st->is_off = false;
    st->last = x->from;
    return check(x, err);
}

static int thread_end(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    (void)t;
    fputs("]}", x->out);
    return check(x, err);
}

/* The time off the CPU is the innermost frame: it steps aside where a call begins or ends meanwhile. */
static int enter(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    if (c->symbol->index < 0) {
        if (st_vec_push(&st->frames, c->symbol))
            return st_nomem(err, "the export");
        c->symbol->index = (int64_t)st->frames.n;
    }
    if (st->is_off)
        put_event(x, 'C', OFF_CPU_FRAME, c->start);
    put_event(x, 'O', c->symbol->index, c->start);
    if (st->is_off)
        put_event(x, 'O', OFF_CPU_FRAME, c->start);
    return check(x, err);
}

static int leave(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    if (st->is_off)
        put_event(x, 'C', OFF_CPU_FRAME, c->end);
    put_event(x, 'C', c->symbol->index, c->end);
    if (st->is_off)
        put_event(x, 'O', OFF_CPU_FRAME, c->end);
    return check(x, err);
}

static int off(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    put_event(x, 'O', OFF_CPU_FRAME, s->start);
    st->is_off = true;
    return check(x, err);
}

static int on(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    put_event(x, 'C', OFF_CPU_FRAME, s->end);
    st->is_off = false;
    return check(x, err);
}

static int end(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;

    fputs("\n],\"shared\":{\"frames\":[\n{\"name\":\"[off-CPU]\"}", x->out);
    for (size_t i = 0; i < st->frames.n; i++)
        fprintf(x->out, ",\n{\"name\":%s,\"file\":%s}", st->frames.at[i]->json,
                st->frames.at[i]->module->json);
    fputs("]}}\n", x->out);
    return check(x, err);
}

static void release(struct vw_export *x)
{
    struct state *st = x->state;

    st_vec_free(&st->frames);
}

const struct vw_export_ops vw_export_speedscope = {
    .name = "speedscope",
    .help = "speedscope's JSON, a profile a thread",
    .state_size = sizeof(struct state),
    .begin = begin,
    .thread_begin = thread_begin,
    .enter = enter,
    .leave = leave,
    .off = off,
    .on = on,
    .thread_end = thread_end,
    .end = end,
    .release = release,
};
