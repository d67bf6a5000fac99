/* Folded stacks, as flamegraph.pl, inferno and speedscope read them: "thread;outermost;...;innermost
 * NANOSECONDS". */
#include "base/safetext.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/export/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Call paths kept at once. With more, what is there is printed and counting begins anew: the readers add up
 * lines of one stack. */
enum { MOST_PATHS = 1 << 20 };

struct path {
    int64_t parent; /* index in `paths`; -1: outermost */

    struct vw_export_symbol *symbol;

    int64_t on_ns, off_ns;

    int64_t first, next; /* children; -1: none */
};

struct state {
    ST_VEC(struct path) paths;

    ST_VEC(struct vw_export_symbol *) stack; /* outermost first */

    ST_VEC(struct vw_export_symbol *) trail; /* of the line that is printed, innermost first */

    bool failed; /* memory for a line ran out */

    int64_t roots; /* the first path without a parent; -1: none */

    int64_t at; /* where the thread is; -1: in no call */

    int64_t now;

    bool is_off;

    const struct vw_export_thread *thread;
};

/* The time since the last event belongs to the innermost call. */
static void charge(struct state *st, int64_t until)
{
    if (until > st->now && st->at >= 0) {
        struct path *p = &st->paths.at[st->at];

        *(st->is_off ? &p->off_ns : &p->on_ns) += until - st->now;
    }
    if (until > st->now)
        st->now = until;
}

static void put_frame(FILE *out, const char *name)
{
    char safe[4096];

    st_safe_text(safe, sizeof(safe), name);
    for (char *c = strchr(safe, ';'); c; c = strchr(c, ';'))
        *c = ':';
    fputs(safe, out);
}

/* The frames of a path, outermost first. */
static void put_path(struct vw_export *x, struct state *st, int64_t i)
{
    st->trail.n = 0;
    for (; i >= 0; i = st->paths.at[i].parent)
        if (st_vec_push(&st->trail, st->paths.at[i].symbol)) {
            st->failed = true;
            return;
        }
    for (size_t k = st->trail.n; k > 0; k--) {
        fputc(';', x->out);
        put_frame(x->out, st->trail.at[k - 1]->name);
        if (st->trail.at[k - 1]->module->kernel)
            fputs("_[k]", x->out);
        else if (st->trail.at[k - 1]->inlined)
            fputs("_[i]", x->out);
    }
}

static void put_line(struct vw_export *x, struct state *st, int64_t i, bool off)
{
    char label[320];

    put_frame(x->out, vw_export_thread_label(st->thread, label, sizeof(label)));
    put_path(x, st, i);
    fprintf(x->out, "%s %" PRId64 "\n", off ? ";[off-CPU]" : "",
            off ? st->paths.at[i].off_ns : st->paths.at[i].on_ns);
}

static int flush(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;

    for (size_t i = 0; i < st->paths.n; i++) {
        if (st->paths.at[i].on_ns)
            put_line(x, st, (int64_t)i, false);
        if (st->paths.at[i].off_ns)
            put_line(x, st, (int64_t)i, true);
    }
    st->paths.n = 0;
    st->roots = st->at = -1;
    if (st->failed)
        return st_nomem(err, "call paths");
    return ferror(x->out) ? st_fail_errno(err, ST_EFAIL, "cannot write the export") : 0;
}

/* Goes from st->at into a child, which is made when it is not there. The newest child stands first, and so
 * does the one that is asked for again. */
static int descend(struct state *st, struct vw_export_symbol *symbol)
{
    int64_t parent = st->at;
    int64_t *link = parent < 0 ? &st->roots : &st->paths.at[parent].first;
    int64_t i = *link, before = -1;

    while (i >= 0 && st->paths.at[i].symbol != symbol) {
        before = i;
        i = st->paths.at[i].next;
    }
    if (i >= 0 && before >= 0) {
        st->paths.at[before].next = st->paths.at[i].next;
        st->paths.at[i].next = *link;
        *link = i;
    }
    if (i < 0) {
        struct path new = {.parent = parent, .symbol = symbol, .first = -1, .next = *link};

        i = (int64_t)st->paths.n;
        if (st_vec_push(&st->paths, new))
            return -1;
        link = parent < 0 ? &st->roots : &st->paths.at[parent].first;
        *link = i;
    }
    st->at = i;
    return 0;
}

static int thread_begin(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;

    (void)err;
    st->thread = t;
    st->now = x->from;
    st->roots = st->at = -1;
    st->is_off = false;
    return 0;
}

static int enter(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;
    int rc = 0;

    c->symbol->inlined = c->flags & TDB_CALL_INLINED;
    charge(st, c->start);
    if (st->paths.n >= MOST_PATHS) {
        rc = flush(x, err);
        for (size_t i = 0; !rc && i < st->stack.n; i++)
            if (descend(st, st->stack.at[i]))
                rc = st_nomem(err, "call paths");
    }
    if (!rc && (st_vec_push(&st->stack, c->symbol) || descend(st, c->symbol)))
        rc = st_nomem(err, "call paths");
    return rc;
}

static int leave(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    (void)err;
    charge(st, c->end);
    st->at = st->paths.at[st->at].parent;
    st->stack.n--;
    return 0;
}

static int off(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    (void)err;
    charge(st, s->start);
    st->is_off = true;
    return 0;
}

static int on(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    (void)err;
    charge(st, s->end);
    st->is_off = false;
    return 0;
}

static int thread_end(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    (void)t;
    return flush(x, err);
}

static void release(struct vw_export *x)
{
    struct state *st = x->state;

    st_vec_free(&st->paths);
    st_vec_free(&st->stack);
    st_vec_free(&st->trail);
}

const struct vw_export_ops vw_export_folded = {
    .name = "folded",
    .help = "folded stacks with nanoseconds (flamegraph.pl, inferno)",
    .state_size = sizeof(struct state),
    .thread_begin = thread_begin,
    .enter = enter,
    .leave = leave,
    .off = off,
    .on = on,
    .thread_end = thread_end,
    .release = release,
};
