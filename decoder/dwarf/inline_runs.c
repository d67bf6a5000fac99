/* Pieces of runs, remembered by run. */
#include "decoder/dwarf/inline_runs.h"

#include "base/vec.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
    LONGEST = 65536,  /* instructions of a run that are looked at */
    MOST_GROUPS = 512 /* no compiler mixes so many */
};

struct dec_inline_run {
    struct {
        uint64_t start, end, before;
    } key;

    struct dec_inline_piece *pieces;

    uint32_t n, instructions;

    UT_hash_handle hh;
};

void dec_inline_runs_free(struct dec_inline_tree *tree)
{
    struct dec_inline_run *run, *next;

    HASH_ITER(hh, tree->runs, run, next)
    {
        HASH_DEL(tree->runs, run);
        free(run->pieces);
        free(run);
    }
}

/* ------------------------------------------------------------------ */
/* The rule                                                             */

/* Instructions next to one another of one node at a level, those of the caller left out. */
struct group {
    uint32_t node;

    size_t first, last; /* instructions */

    size_t weight;

    bool counts; /* as its node's */

    bool seen;
};

/* What is looked at at a time: labels [from, to), all of them of nodes within `around`. */
struct stretch {
    uint32_t around;

    size_t from, to;
};

struct smoother {
    const struct dec_inline_tree *tree;

    uint32_t *labels;

    bool goes_on; /* the first label is of what was before the run */

    ST_VEC(struct group) groups;

    ST_VEC(struct stretch) stretches; /* that are left to do */
};

/* The node on the way from `around` to the node that was inlined in that one; DEC_NO_INLINE: the node is
 * `around` itself. */
static uint32_t child_on_way(const struct dec_inline_tree *tree, uint32_t node, uint32_t around)
{
    while (node != around && node != DEC_NO_INLINE && tree->nodes[node].parent != around)
        node = tree->nodes[node].parent;
    return node == around ? DEC_NO_INLINE : node;
}

static int group_labels(struct smoother *s, const struct stretch *at)
{
    s->groups.n = 0;
    for (size_t i = at->from; i < at->to; i++) {
        uint32_t node = child_on_way(s->tree, s->labels[i], at->around);
        struct group *last = s->groups.n ? &s->groups.at[s->groups.n - 1] : NULL;

        if (node == DEC_NO_INLINE)
            continue;
        if (last && last->node == node) {
            last->last = i;
            last->weight++;
        } else if (st_vec_push(&s->groups, (struct group){node, i, i, 1, false, false})) {
            return -1;
        }
    }
    return 0;
}

/* Of each node the heaviest group, or those that the run begins and ends in. */
static void choose_of(struct smoother *s, struct group *first, size_t n)
{
    struct group *end = s->groups.at + s->groups.n, *best = first;
    bool forced = false;

    for (struct group *g = first; g < end; g++) {
        if (g->node != first->node)
            continue;
        g->seen = true;
        if (g->weight > best->weight)
            best = g;
        g->counts = g->last + 1 == n || (g->first == 0 && s->goes_on);
        forced |= g->counts;
    }
    best->counts |= !forced;
}

static void choose(struct smoother *s, size_t n)
{
    for (size_t i = 0; i < s->groups.n; i++) {
        if (s->groups.n > MOST_GROUPS)
            s->groups.at[i].counts = true;
        else if (!s->groups.at[i].seen)
            choose_of(s, &s->groups.at[i], n);
    }
}

/* The instructions of a group that counts, and of its node's other ones that no other one that counts stands
 * before. */
static struct stretch extent(const struct smoother *s, size_t i)
{
    const struct group *g = &s->groups.at[i];
    struct stretch of = {g->node, g->first, g->last + 1};

    for (size_t j = i; j-- > 0 && !s->groups.at[j].counts;)
        if (s->groups.at[j].node == g->node)
            of.from = s->groups.at[j].first;
    for (size_t j = i + 1; j < s->groups.n && !s->groups.at[j].counts; j++)
        if (s->groups.at[j].node == g->node)
            of.to = s->groups.at[j].last + 1;
    return of;
}

static int settle(struct smoother *s, const struct stretch *at)
{
    size_t done = at->from; /* labels before are settled */

    for (size_t i = 0; i < s->groups.n; i++) {
        struct stretch of;

        if (!s->groups.at[i].counts)
            continue;
        of = extent(s, i);
        if (of.from < done)
            of.from = done;
        for (; done < of.from; done++)
            s->labels[done] = at->around;
        for (; done < of.to; done++)
            if (child_on_way(s->tree, s->labels[done], at->around) != of.around)
                s->labels[done] = of.around;
        if (st_vec_push(&s->stretches, of))
            return -1;
    }
    for (; done < at->to; done++)
        s->labels[done] = at->around;
    return 0;
}

int dec_inline_smooth(const struct dec_inline_tree *tree, uint32_t *labels, size_t n, bool goes_on)
{
    struct smoother s = {.tree = tree, .labels = labels, .goes_on = goes_on};
    struct stretch at = {DEC_NO_INLINE, 0, n};
    int rc = st_vec_push(&s.stretches, at);

    while (rc == 0 && s.stretches.n) {
        at = s.stretches.at[--s.stretches.n];
        rc = group_labels(&s, &at);
        choose(&s, n);
        if (rc == 0)
            rc = settle(&s, &at);
    }
    st_vec_free(&s.groups);
    st_vec_free(&s.stretches);
    return rc;
}

/* ------------------------------------------------------------------ */
/* Runs                                                                 */

typedef ST_VEC(uint32_t) labels_vec;

static int label(const struct dec_inline_tree *tree, uint64_t start, uint64_t end,
                 dec_inline_length_fn *length, void *ctx, labels_vec *labels)
{
    for (uint64_t at = start; at < end && labels->n < LONGEST;) {
        unsigned n = length(ctx, at);

        if (st_vec_push(labels, dec_inline_at(tree, at)))
            return -1;
        if (!n)
            break;
        at += n;
    }
    return 0;
}

static int cut(struct dec_inline_run *run, const uint32_t *labels, size_t n)
{
    ST_VEC(struct dec_inline_piece) pieces = {0};

    for (size_t i = 0; i < n; i++)
        if ((i == 0 || labels[i] != labels[i - 1]) &&
            st_vec_push(&pieces, (struct dec_inline_piece){(uint32_t)i, labels[i]})) {
            st_vec_free(&pieces);
            return -1;
        }
    run->pieces = pieces.at;
    run->n = (uint32_t)pieces.n;
    run->instructions = (uint32_t)n;
    return 0;
}

/* What was before the run takes part in the rule as an instruction in front of it. */
static int make(struct dec_inline_tree *tree, struct dec_inline_run *run, dec_inline_length_fn *length,
                void *ctx)
{
    labels_vec labels = {0};
    bool before = run->key.before != DEC_NO_INLINE;
    int rc = before ? st_vec_push(&labels, (uint32_t)run->key.before) : 0;

    if (rc == 0)
        rc = label(tree, run->key.start, run->key.end, length, ctx, &labels);
    if (rc == 0)
        rc = dec_inline_smooth(tree, labels.at, labels.n, before);
    if (rc == 0)
        rc = cut(run, labels.at + before, labels.n - before);
    st_vec_free(&labels);
    return rc;
}

static struct dec_inline_run *add(struct dec_inline_tree *tree, const struct dec_inline_run *like,
                                  dec_inline_length_fn *length, void *ctx)
{
    struct dec_inline_run *run = calloc(1, sizeof(*run));

    if (!run)
        return NULL;
    run->key = like->key;
    if (make(tree, run, length, ctx) == 0)
        HASH_ADD(hh, tree->runs, key, sizeof(run->key), run);
    if (run->hh.tbl)
        return run;
    free(run->pieces);
    free(run);
    return NULL;
}

/* Whether all of the run is of one node, so that nothing need be counted. */
static bool is_plain(const struct dec_inline_tree *tree, uint64_t start, uint64_t end, uint32_t before,
                     uint32_t *node)
{
    const struct dec_inline_span *span = dec_inline_span_from(tree, start);

    *node = DEC_NO_INLINE;
    if (!span || span->start >= end)
        return true;
    *node = span->node;
    return span->start <= start && span->end >= end && (before == DEC_NO_INLINE || before == span->node);
}

int dec_inline_pieces_of(struct dec_inline_tree *tree, uint64_t start, uint64_t end, uint32_t before,
                         dec_inline_length_fn *length, void *ctx, struct dec_inline_pieces *pieces)
{
    const struct dec_inline_run probe = {.key = {start, end, before}};
    struct dec_inline_run *run = NULL;
    uint32_t node;

    if (is_plain(tree, start, end, before, &node)) {
        pieces->plain = (struct dec_inline_piece){0, node};
        pieces->at = &pieces->plain;
        pieces->n = 1;
        pieces->instructions = 0;
        return 0;
    }
    HASH_FIND(hh, tree->runs, &probe.key, sizeof(probe.key), run);
    if (!run)
        run = add(tree, &probe, length, ctx);
    if (!run)
        return -1;
    pieces->at = run->pieces;
    pieces->n = run->n;
    pieces->instructions = run->instructions;
    return 0;
}
