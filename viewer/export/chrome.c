/* Chrome's JSON trace ("Trace Event Format"): what chrome://tracing, Perfetto and many others load. */
#include "viewer/export/export.h"
#include "viewer/rows.h"

#include <inttypes.h>
#include <string.h>

struct state {
    bool any; /* an event was written */

    const struct vw_export_thread *thread;
};

/* Microseconds, as the format wants them, to the nanosecond. */
static void put_time(FILE *out, const char *key, int64_t ns)
{
    fprintf(out, ",\"%s\":%s%" PRId64 ".%03d", key, ns < 0 ? "-" : "", ns < 0 ? -ns / 1000 : ns / 1000,
            (int)((ns < 0 ? -ns : ns) % 1000));
}

static void put_string(FILE *out, const char *key, const char *text)
{
    fprintf(out, ",\"%s\":", key);
    vw_json_string(out, text ? text : "", text ? strlen(text) : 0);
}

/* The beginning of an event: its kind, and whose it is. */
static void start(struct vw_export *x, const char *phase, const struct vw_export_thread *t)
{
    struct state *st = x->state;

    fprintf(x->out, "%s{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, st->any ? ",\n" : "\n", phase,
            t ? t->pid : 0, t ? t->tid : 0);
    st->any = true;
}

static int check(struct vw_export *x, struct st_error *err)
{
    return ferror(x->out) ? st_fail_errno(err, ST_EFAIL, "cannot write the export") : 0;
}

static int begin(struct vw_export *x, struct st_error *err)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", x->out);
    return check(x, err);
}

static void put_name(struct vw_export *x, const struct vw_export_thread *t, const char *what,
                     const char *name)
{
    start(x, "M", t);
    put_string(x->out, "name", what);
    fputs(",\"args\":{\"name\":", x->out);
    vw_json_string(x->out, name, strlen(name));
    fputs("}}", x->out);
}

static int thread_begin(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;

    st->thread = t;
    put_name(x, t, "process_name", t->process);
    put_name(x, t, "thread_name", t->name);
    return check(x, err);
}

static int enter(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    start(x, "X", st->thread);
    fprintf(x->out, ",\"name\":%s,\"cat\":%s", c->symbol->json, c->symbol->module->json);
    put_time(x->out, "ts", c->start);
    put_time(x->out, "dur", c->end - c->start);
    fprintf(x->out, ",\"args\":{\"id\":%" PRId64 ",\"flags\":%u}}", c->id, c->flags & 255);
    return check(x, err);
}

/* Asynchronous events have rows of their own, so that they need not nest with the calls. */
static void put_async(struct vw_export *x, const struct vw_export_span *s, const char *category,
                      const char *name)
{
    for (int end = 0; end < 2; end++) {
        start(x, end ? "e" : "b", s->thread);
        put_string(x->out, "cat", category);
        put_string(x->out, "name", name);
        fprintf(x->out, ",\"id\":\"%s-%" PRId64 "\"", category, s->id);
        put_time(x->out, "ts", end ? s->end : s->start);
        fputs(",\"args\":{", x->out);
        if (!end && s->detail) {
            fputs("\"detail\":", x->out);
            vw_json_string(x->out, s->detail, strlen(s->detail));
        }
        fputs("}}", x->out);
    }
}

static int off(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    put_async(x, s, "off-CPU", s->text);
    return check(x, err);
}

static int gap(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    put_async(x, s, "gap", s->text);
    return check(x, err);
}

static int mark(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    start(x, "i", s->thread);
    put_string(x->out, "name", s->text);
    put_string(x->out, "cat", "mark");
    put_string(x->out, "s", s->thread ? "t" : "g");
    put_time(x->out, "ts", s->start);
    put_string(x->out, "detail", s->detail);
    fputc('}', x->out);
    return check(x, err);
}

/* The arrow from the waker to the woken thread. */
static void put_flow(struct vw_export *x, const char *phase, const struct vw_export_thread *t, int64_t time,
                     int64_t id)
{
    start(x, phase, t);
    put_string(x->out, "name", "wake");
    put_string(x->out, "cat", "wake");
    fprintf(x->out, ",\"id\":%" PRId64 "%s", id, *phase == 'f' ? ",\"bp\":\"e\"" : "");
    put_time(x->out, "ts", time);
    fputc('}', x->out);
}

static int stall(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    put_async(x, s, "stall", s->text);
    if (s->thread && s->waker && s->wake >= x->from && s->wake < x->to) {
        put_flow(x, "s", s->waker, s->wake, s->id);
        put_flow(x, "f", s->thread, s->end, s->id);
    }
    return check(x, err);
}

static int end(struct vw_export *x, struct st_error *err)
{
    fputs("\n],\"otherData\":{\"producer\":\"stalltrap " ST_VERSION "\"", x->out);
    put_string(x->out, "trace", x->title);
    fputs("}}\n", x->out);
    return check(x, err);
}

const struct vw_export_ops vw_export_chrome = {
    .name = "chrome",
    .help = "Chrome's JSON trace (chrome://tracing, Perfetto)",
    .state_size = sizeof(struct state),
    .begin = begin,
    .thread_begin = thread_begin,
    .enter = enter,
    .off = off,
    .gap = gap,
    .mark = mark,
    .stall = stall,
    .end = end,
};
