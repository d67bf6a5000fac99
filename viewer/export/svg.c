/* A picture of the timeline: SVG without scripts, to be put into a ticket. */
#include "base/safetext.h"
#include "base/units.h"
#include "viewer/export/picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1600,
    ROW = 16,
    TOP = 44,      /* title and ruler */
    CHARACTER = 7, /* of the names, in pixels */
};

struct state {
    struct vw_measure measure;

    struct vw_blocks blocks;

    int64_t *y; /* of each thread's first row */

    int64_t height, thread_y;

    struct vw_export_span off; /* not yet drawn */

    bool has_off;
};

static double column(const struct vw_export *x, int64_t time)
{
    return (double)(time - x->from) * WIDTH / (double)(x->to - x->from + (x->to == x->from));
}

static void put_text(FILE *out, const char *text)
{
    char safe[1024];

    st_safe_text(safe, sizeof(safe), text);
    for (const char *c = safe; *c; c++) {
        if (*c == '&')
            fputs("&amp;", out);
        else if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '>') /* "]]>" may not stand in XML's text */
            fputs("&gt;", out);
        else if (*c == '"')
            fputs("&quot;", out);
        else
            fputc(*c, out);
    }
}

/* The name as far as there is room, cut between characters. */
static void put_label(FILE *out, double x, int64_t y, double width, const char *name)
{
    char cut[256];
    size_t room = (size_t)(width / CHARACTER), n = strlen(name);

    if (room < 3)
        return;
    if (room >= sizeof(cut))
        room = sizeof(cut) - 1;
    if (n > room)
        for (n = room - 1; n && (name[n] & 0xc0) == 0x80; n--)
            ;
    snprintf(cut, sizeof(cut), "%.*s%s", (int)n, name, n < strlen(name) ? "." : "");
    fprintf(out, "<text x=\"%.1f\" y=\"%" PRId64 "\">", x + 2, y + ROW - 4);
    put_text(out, cut);
    fputs("</text>", out);
}

static int check(struct vw_export *x, struct st_error *err)
{
    return ferror(x->out) ? st_fail_errno(err, ST_EFAIL, "cannot write the export") : 0;
}

static int put_block(void *ctx, const struct vw_block *b, struct st_error *err)
{
    struct vw_export *x = ctx;
    struct state *st = x->state;
    double left = column(x, b->start), width = column(x, b->end) - left;
    int64_t y = st->thread_y + ROW * (1 + (int64_t)b->depth);
    bool kernel = b->symbol->module->kernel;
    char length[32];

    if (width < 1)
        width = 1;
    fprintf(x->out,
            "<g><rect x=\"%.2f\" y=\"%" PRId64 "\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%d,%s)\"/><title>",
            left, y, width, ROW - 1, kernel ? 20 : vw_picture_hue(b->symbol->module->name),
            kernel ? "90%,66%" : "55%,72%");
    if (b->calls > 1)
        fprintf(x->out, "%" PRId64 " calls, the longest: ", b->calls);
    put_text(x->out, b->symbol->name);
    fputs(" (", x->out);
    put_text(x->out, b->symbol->module->name);
    fprintf(x->out, ") %s</title>", st_format_duration(b->longest_ns, length, sizeof(length)));
    if (b->calls == 1)
        put_label(x->out, left < 0 ? 0 : left, y, width, b->symbol->name);
    fputs("</g>\n", x->out);
    return check(x, err);
}

/* A strip in the first row of a thread, or over the whole picture. */
static void put_strip(struct vw_export *x, const struct vw_export_span *s, const char *class, int64_t y,
                      int64_t height)
{
    double left = column(x, s->start), width = column(x, s->end) - left;
    char length[32];

    fprintf(x->out,
            "<rect class=\"%s\" x=\"%.2f\" y=\"%" PRId64 "\" width=\"%.2f\" height=\"%" PRId64 "\"><title>",
            class, left, y, width < 1 ? 1 : width, height);
    put_text(x->out, s->text ? s->text : "");
    fprintf(x->out, " %s", st_format_duration(s->end - s->start, length, sizeof(length)));
    if (s->detail) {
        fputs(": ", x->out);
        put_text(x->out, s->detail);
    }
    fputs("</title></rect>\n", x->out);
}

static void put_ruler(struct vw_export *x)
{
    const int ticks = 10;

    for (int i = 0; i < ticks; i++) {
        int64_t time = x->from + (x->to - x->from) / ticks * i;
        char text[32];

        fprintf(x->out,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"24\" y2=\"100%%\"/><text x=\"%.1f\" y=\"36\">%s</text>\n",
                column(x, time), column(x, time), column(x, time) + 2,
                st_format_duration(time, text, sizeof(text)));
    }
}

static int lay_out(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;
    int rc = vw_picture_measure(x, &st->measure, err);

    if (rc)
        return rc;
    st->y = calloc(x->all_threads + 1, sizeof(*st->y));
    if (!st->y)
        return st_nomem(err, "the picture");
    st->height = TOP;
    for (size_t i = 0; i < x->all_threads; i++) {
        st->y[i] = st->height;
        if (st->measure.rows[i])
            st->height += ROW * (2 + st->measure.rows[i]);
    }
    st->blocks = (struct vw_blocks){.least = (x->to - x->from) / WIDTH, .put = put_block, .ctx = x};
    return 0;
}

static int begin(struct vw_export *x, struct st_error *err)
{
    struct state *st = x->state;
    int rc = lay_out(x, err);

    if (rc)
        return rc;
    fprintf(
        x->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
        "height=\"%" PRId64 "\" viewBox=\"0 0 %d %" PRId64 "\">\n<style>svg{background:#fff}text{font:11px "
        "monospace;fill:#222}line{stroke:#ddd}.who{font-weight:bold}.off{fill:#9db4d6}.gap{fill:url(#hatch)}."
        "stall{"
        "fill:#d33;fill-opacity:.12;stroke:#d33;pointer-events:stroke}</style>\n<defs><pattern id=\"hatch\" "
        "width=\"6\" height=\"6\" "
        "patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\" stroke=\"#d33\"/></pattern></defs>\n",
        WIDTH, st->height, WIDTH, st->height);
    fputs("<text class=\"who\" x=\"4\" y=\"16\">", x->out);
    put_text(x->out, x->title);
    fputs("</text>\n", x->out);
    put_ruler(x);
    return check(x, err);
}

static int thread_begin(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;
    char label[320];

    st->thread_y = st->y[t - x->thread_list];
    if (!st->measure.rows[t - x->thread_list])
        return 0;
    fprintf(x->out, "<text class=\"who\" x=\"4\" y=\"%" PRId64 "\">", st->thread_y + ROW - 4);
    put_text(x->out, vw_export_thread_label(t, label, sizeof(label)));
    fputs("</text>\n", x->out);
    return check(x, err);
}

static int enter(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct state *st = x->state;

    return vw_blocks_add(&st->blocks, c, err);
}

static void put_off(struct vw_export *x)
{
    struct state *st = x->state;

    if (st->has_off)
        put_strip(x, &st->off, "off", st->thread_y + ROW - 3, 3);
    st->has_off = false;
}

/* Waits that begin in one column are one strip. */
static int off(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    if (st->has_off && s->start - st->off.start < st->blocks.least) {
        st->off.end = s->end;
        st->off.text = "off-CPU, several times in";
        return 0;
    }
    put_off(x);
    st->off = *s;
    st->has_off = true;
    return check(x, err);
}

static int thread_end(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct state *st = x->state;

    (void)t;
    put_off(x);
    return vw_blocks_flush(&st->blocks, err);
}

static int gap(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;
    bool own = s->thread && st->measure.rows[s->thread - x->thread_list];

    if (own || !s->thread)
        put_strip(x, s, "gap", own ? st->y[s->thread - x->thread_list] : TOP - ROW / 2, own ? ROW : ROW / 2);
    return check(x, err);
}

static int stall(struct vw_export *x, const struct vw_export_span *s, struct st_error *err)
{
    struct state *st = x->state;

    if (s->thread && st->measure.rows[s->thread - x->thread_list])
        put_strip(x, s, "stall", st->y[s->thread - x->thread_list],
                  ROW * (1 + st->measure.rows[s->thread - x->thread_list]));
    return check(x, err);
}

static int end(struct vw_export *x, struct st_error *err)
{
    fputs("</svg>\n", x->out);
    return check(x, err);
}

static void release(struct vw_export *x)
{
    struct state *st = x->state;

    free(st->measure.rows);
    free(st->y);
    st_vec_free(&st->blocks.pending);
}

const struct vw_export_ops vw_export_svg = {
    .name = "svg",
    .help = "a picture of the timeline",
    .state_size = sizeof(struct state),
    .begin = begin,
    .thread_begin = thread_begin,
    .enter = enter,
    .off = off,
    .thread_end = thread_end,
    .gap = gap,
    .stall = stall,
    .end = end,
    .release = release,
};
