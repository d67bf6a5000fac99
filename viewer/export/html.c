/* A page with the timeline: page.html with the trace in it; it loads nothing. */
#include "base/safetext.h"
#include "viewer/export/picture.h"
#include "viewer/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern const char vw_export_page[];

/* Where the trace goes in the page. */
static const char marker[] = "/*TRACE*/null";

/* With more calls than this, short ones are put together until so many blocks are left. */
enum { MOST_BLOCKS = 200000 };

struct state {
    struct vw_measure measure;

    struct vw_blocks blocks;

    ST_VEC(struct vw_export_symbol *) symbols; /* in the order of their numbers */

    bool any_thread, any_block;

    bool any_span; /* in the list that is open */
};

static int check(struct vw_export *x, struct st_error *err)
{
    return ferror(x->out) ? st_fail_errno(err, ST_EFAIL, "cannot write the export") : 0;
}

/* JSON that cannot end the script element it stands in. */
static void put_json(FILE *out, const char *json)
{
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    }
}

static int put_text(struct vw_export *x, const char *text, struct st_error *err)
{
    char *json = NULL;
    size_t size = 0;
    FILE *mem = open_memstream(&json, &size);

    if (!mem)
        return st_nomem(err, "the page");
    vw_json_string(mem, text ? text : "", text ? strlen(text) : 0);
    if (fclose(mem)) {
        free(json);
        return st_nomem(err, "the page");
    }
    put_json(x->out, json);
    free(json);
    return 0;
}

static int put_block(void *ctx, const struct vw_block *b, struct st_error *err)
{
    struct vw_export *x = ctx;
    struct state *st = x->state;

    if (b->symbol->index < 0) {
        if (st_vec_push(&st->symbols, b->symbol))
            return st_nomem(err, "the page");
        b->symbol->index = (int64_t)st->symbols.n - 1;
    }
    fprintf(x->out, "%s%" PRId64 ",%" PRId64 ",%d,%" PRId64 ",%" PRId64 ",%" PRId64, st->any_block ? "," : "",
            b->start, b->end - b->start, b->depth, b->symbol->index, b->calls, b->longest_ns);
    st->any_block = true;
    return 0;
}

static int begin(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;
    int rc = vw_picture_measure(x, &st->measure, err);
    int level;

    if (rc)
        return rc;
    st->blocks = (struct vw_blocks){.put = put_block, .ctx = x};
    for (level = 0; level < VW_LEVELS - 1 && st->measure.blocks[level] > MOST_BLOCKS; level++)
        ;
    st->blocks.least = level ? (int64_t)1 << level : 0;
    fwrite(vw_export_page, 1, (size_t)(strstr(vw_export_page, marker) - vw_export_page), x->out);
    fprintf(x->out,
            "{\"from\":%" PRId64 ",\"to\":%" PRId64 ",\"calls\":%" PRId64 ",\"least\":%" PRId64 ",\"title\":",
            x->from, x->to, st->measure.calls, st->blocks.least);
    rc = put_text(x, x->title, err);
    fputs(",\n\"threads\":[", x->out);
    return rc ? rc : check(x, err);
}

/* A block is six numbers: start, length, depth, symbol, calls, longest; a wait is one with depth -1. */
static int thread_begin(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;
    char label[320];
    int rc;

    fprintf(x->out, "%s\n{\"id\":%" PRId64 ",\"rows\":%" PRId64 ",\"name\":", st->any_thread ? "," : "",
            t->id, st->measure.rows[t - x->thread_list]);
    rc = put_text(x, vw_export_thread_label(t, label, sizeof(label)), err);
    fputs(",\"blocks\":[", x->out);
    st->any_thread = true;
    st->any_block = false;
    return rc ? rc : check(x, err);
}

static int enter(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;
    int rc = vw_blocks_add(&st->blocks, c, err);

    return rc ? rc : check(x, err);
}

static int off(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    fprintf(x->out, "%s%" PRId64 ",%" PRId64 ",-1,-1,1,%" PRId64, st->any_block ? "," : "", s->start,
            s->end - s->start, s->end - s->start);
    st->any_block = true;
    return check(x, err);
}

static int thread_end(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;
    int rc = vw_blocks_flush(&st->blocks, err);

    (void)t;
    fputs("]}", x->out);
    return rc ? rc : check(x, err);
}

static int put_span(struct vw_export *x, const char *kind, const struct vw_export_span *s,
                    struct st_error *err)
{
    struct state *st = x->state;
    int rc;

    fputs(st->any_span ? ",\n" : "],\n\"spans\":[", x->out);
    st->any_span = true;
    fprintf(x->out,
            "{\"kind\":\"%s\",\"thread\":%" PRId64 ",\"start\":%" PRId64 ",\"end\":%" PRId64 ",\"text\":",
            kind, s->thread ? s->thread->id : 0, s->start, s->end);
    rc = put_text(x, s->text, err);
    if (!rc && s->detail) {
        fputs(",\"detail\":", x->out);
        rc = put_text(x, s->detail, err);
    }
    fputc('}', x->out);
    return rc ? rc : check(x, err);
}

static int gap(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    return put_span(x, "gap", s, err);
}

static int mark(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    return put_span(x, "mark", s, err);
}

static int stall(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    return put_span(x, "stall", s, err);
}

static int end(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;

    fputs(st->any_span ? "" : "],\n\"spans\":[", x->out);
    fputs("],\n\"symbols\":[", x->out);
    for (size_t i = 0; i < st->symbols.n; i++) {
        const struct vw_export_symbol *s = st->symbols.at[i];

        fputs(i ? ",\n[" : "\n[", x->out);
        put_json(x->out, s->json);
        fputc(',', x->out);
        put_json(x->out, s->module->json);
        fprintf(x->out, ",%d,%d]", vw_picture_hue(s->module->name), s->module->kernel);
    }
    fputs("]}", x->out);
    fputs(strstr(vw_export_page, marker) + strlen(marker), x->out);
    return check(x, err);
}

static void release(struct vw_export *x)
{
    struct state *st = x->state;

    free(st->measure.rows);
    st_vec_free(&st->blocks.pending);
    st_vec_free(&st->symbols);
}

const struct vw_export_ops vw_export_html = {
    .name = "html",
    .help = "one page with the timeline, to pan, zoom and search",
    .state_size = sizeof(struct state),
    .begin = begin,
    .thread_begin = thread_begin,
    .enter = enter,
    .off = off,
    .thread_end = thread_end,
    .gap = gap,
    .mark = mark,
    .stall = stall,
    .end = end,
    .release = release,
};
