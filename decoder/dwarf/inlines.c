/* Asks the child, and makes trees of its answers. */
#include "decoder/dwarf/inlines.h"
#include "base/bisect.h"

#include "base/vec.h"
#include "decoder/dwarf/debug_tables.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A function that was asked for. */
struct known {
    struct {
        const struct dec_image *image;

        uint64_t function;
    } key;

    struct dec_inline_tree *tree; /* NULL: nothing is inlined in it */

    UT_hash_handle hh;
};

struct dec_inlines {
    pid_t child;

    int fd; /* -1: the child is gone */

    struct known *known;

    ST_VEC(const struct dec_image *) without;
};

/* ------------------------------------------------------------------ */
/* Trees                                                                */

static int by_value(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b;
}

static bool take_nodes(struct dec_inline_tree *tree, const struct dec_inline_told *nodes, size_t n,
                       size_t nstrings)
{
    for (size_t i = 0; i < n; i++) {
        const struct dec_inline_told *t = &nodes[i];
        bool outermost = t->parent == DEC_NO_INLINE;

        if ((!outermost && t->parent >= i) || t->name >= nstrings || t->file >= nstrings)
            return false;
        tree->nodes[i] = (struct dec_inline_node){.parent = t->parent,
                                                  .depth = outermost ? 0 : tree->nodes[t->parent].depth + 1,
                                                  .name = tree->strings + t->name,
                                                  .file = tree->strings + t->file,
                                                  .line = t->line,
                                                  .symbol = DEC_NO_INLINE};
        if (tree->nodes[i].depth >= DEC_INLINE_DEPTH)
            return false;
    }
    tree->nnodes = n;
    return true;
}

/* Ends of spans, ascending, each once. Returns how many. */
static size_t sort_ends(const struct dec_inline_span *spans, size_t n, uint64_t *ends)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        ends[2 * i] = spans[i].start;
        ends[2 * i + 1] = spans[i].end;
    }
    qsort(ends, 2 * n, sizeof(*ends), by_value);
    for (size_t i = 0; i < 2 * n; i++)
        if (kept == 0 || ends[kept - 1] != ends[i])
            ends[kept++] = ends[i];
    return kept;
}

static void paint(const struct dec_inline_span *span, const uint64_t *ends, size_t n, uint32_t *owner)
{
    const uint64_t *from = bsearch(&span->start, ends, n, sizeof(*ends), by_value);

    for (size_t i = (size_t)(from - ends); i + 1 < n && ends[i] < span->end; i++)
        owner[i] = span->node;
}

static void join(struct dec_inline_tree *tree, const uint64_t *ends, size_t n, const uint32_t *owner)
{
    for (size_t i = 0; i + 1 < n; i++) {
        struct dec_inline_span *last = tree->nspans ? &tree->spans[tree->nspans - 1] : NULL;

        if (owner[i] == DEC_NO_INLINE)
            continue;
        if (last && last->node == owner[i] && last->end == ends[i])
            last->end = ends[i + 1];
        else
            tree->spans[tree->nspans++] = (struct dec_inline_span){ends[i], ends[i + 1], owner[i]};
    }
}

/* Those of nodes that are inlined in others lie upon these. */
static bool take_spans(struct dec_inline_tree *tree, const struct dec_inline_span *spans, size_t n)
{
    uint64_t *ends = calloc(2 * n + 1, sizeof(*ends));
    uint32_t *owner = malloc((2 * n + 1) * sizeof(*owner));
    bool good = ends && owner;

    for (size_t i = 0; i < n && good; i++)
        good = spans[i].start < spans[i].end && spans[i].node < tree->nnodes &&
               (i == 0 || spans[i - 1].node <= spans[i].node);
    if (good) {
        size_t nends = sort_ends(spans, n, ends);

        memset(owner, 0xff, (2 * n + 1) * sizeof(*owner));
        for (size_t i = 0; i < n; i++)
            paint(&spans[i], ends, nends, owner);
        join(tree, ends, nends, owner);
    }
    free(ends);
    free(owner);
    return good;
}

struct dec_inline_tree *dec_inline_tree_new(const struct dec_inline_told *nodes, size_t nnodes,
                                            const struct dec_inline_span *spans, size_t nspans, char *strings,
                                            size_t nstrings)
{
    struct dec_inline_tree *tree = calloc(1, sizeof(*tree));

    if (!tree) {
        free(strings);
        return NULL;
    }
    tree->strings = strings;
    tree->nodes = calloc(nnodes + 1, sizeof(*tree->nodes));
    tree->spans = calloc(2 * nspans + 1, sizeof(*tree->spans));
    if (tree->nodes && tree->spans && nstrings && !strings[nstrings - 1] &&
        take_nodes(tree, nodes, nnodes, nstrings) && take_spans(tree, spans, nspans))
        return tree;
    dec_inline_tree_free(tree);
    return NULL;
}

void dec_inline_tree_free(struct dec_inline_tree *tree)
{
    if (!tree)
        return;
    dec_inline_runs_free(tree);
    free(tree->nodes);
    free(tree->spans);
    free(tree->strings);
    free(tree);
}

const struct dec_inline_span *dec_inline_span_from(const struct dec_inline_tree *tree, uint64_t address)
{
    size_t first = st_bisect(i, tree->nspans, tree->spans[i].end <= address);

    return first < tree->nspans ? &tree->spans[first] : NULL;
}

uint32_t dec_inline_at(const struct dec_inline_tree *tree, uint64_t address)
{
    const struct dec_inline_span *span = dec_inline_span_from(tree, address);

    return span && span->start <= address ? span->node : DEC_NO_INLINE;
}

/* ------------------------------------------------------------------ */
/* The child                                                            */

static __attribute__((noreturn)) void be_child(struct dec_images *images, int fd)
{
    debug_be_child();
    dec_inlines_serve(images, fd);
    _exit(0);
}

int dec_inlines_open(struct dec_images *images, struct dec_inlines **inlines, struct st_error *err)
{
    struct dec_inlines *in = calloc(1, sizeof(*in));
    int ends[2];

    if (!in)
        return st_nomem(err, "the functions that were inlined");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        free(in);
        return st_fail_errno(err, ST_EFAIL, "cannot start the process that reads DWARF");
    }
    in->child = fork();
    if (in->child == 0) {
        close(ends[0]);
        be_child(images, ends[1]);
    }
    close(ends[1]);
    if (in->child < 0) {
        close(ends[0]);
        free(in);
        return st_fail_errno(err, ST_EFAIL, "cannot start the process that reads DWARF");
    }
    in->fd = ends[0];
    *inlines = in;
    return 0;
}

static void end_child(struct dec_inlines *in)
{
    if (in->fd < 0)
        return;
    close(in->fd); /* with that it ends */
    in->fd = -1;
    while (waitpid(in->child, NULL, 0) < 0 && errno == EINTR)
        ;
}

void dec_inlines_close(struct dec_inlines *in)
{
    struct known *k, *next;

    if (!in)
        return;
    end_child(in);
    HASH_ITER(hh, in->known, k, next)
    {
        HASH_DEL(in->known, k);
        dec_inline_tree_free(k->tree);
        free(k);
    }
    st_vec_free(&in->without);
    free(in);
}

/* A part of an answer; NULL: the child is gone, or no memory. Never of 0 bytes. */
static void *take(const struct dec_inlines *in, size_t n)
{
    char *bytes = malloc(n + 1);
    size_t at = 0;

    while (bytes && at < n) {
        ssize_t got = recv(in->fd, bytes + at, n - at, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(bytes);
            return NULL;
        }
        at += (size_t)got;
    }
    return bytes;
}

static struct dec_inline_tree *take_tree(const struct dec_inlines *in, const struct dec_inline_answer *a,
                                         bool *whole)
{
    struct dec_inline_told *nodes = take(in, a->nodes * sizeof(*nodes));
    struct dec_inline_span *spans = nodes ? take(in, a->spans * sizeof(*spans)) : NULL;
    char *strings = spans ? take(in, a->strings) : NULL;
    struct dec_inline_tree *tree = NULL;

    *whole = strings;
    if (strings && a->nodes)
        tree = dec_inline_tree_new(nodes, a->nodes, spans, a->spans, strings, a->strings);
    else
        free(strings);
    free(nodes);
    free(spans);
    return tree;
}

/* The tree of an answer, the one that is there already if it is known. */
static struct dec_inline_tree *keep(struct dec_inlines *in, const struct dec_image *image,
                                    const struct dec_inline_answer *a, struct dec_inline_tree *tree)
{
    struct known *k = NULL, probe;

    memset(&probe, 0, sizeof(probe));
    probe.key.image = image;
    probe.key.function = a->function;
    HASH_FIND(hh, in->known, &probe.key, sizeof(probe.key), k);
    if (!k) {
        k = calloc(1, sizeof(*k));
        if (k) {
            k->key = probe.key;
            k->tree = tree;
            HASH_ADD(hh, in->known, key, sizeof(k->key), k);
            if (k->hh.tbl)
                return tree;
        }
        free(k);
        k = NULL;
    }
    dec_inline_tree_free(tree);
    return k ? k->tree : NULL;
}

static struct dec_inline_tree *ask(struct dec_inlines *in, struct dec_image *image, uint64_t address)
{
    struct dec_inline_question q = {image, address};
    struct dec_inline_answer *a = NULL;
    struct dec_inline_tree *tree = NULL;
    bool whole = false;

    if (send(in->fd, &q, sizeof(q), MSG_NOSIGNAL) == (ssize_t)sizeof(q))
        a = take(in, sizeof(*a));
    if (a && a->nodes <= DEC_INLINE_NODES && a->spans <= DEC_INLINE_SPANS && a->strings <= DEC_INLINE_STRINGS)
        tree = take_tree(in, a, &whole);
    if (!whole) {
        end_child(in);
    } else if (!a->has_dwarf) {
        image_file_of(image)->no_lines = true;
        (void)st_vec_push(&in->without, image); /* no memory: it is not told of, then */
    }
    if (tree)
        tree = keep(in, image, a, tree);
    free(a);
    return tree;
}

struct dec_inline_tree *dec_inlines_tree(struct dec_inlines *in, struct dec_image *image, uint64_t address)
{
    if (in->fd < 0 || image->kernel || image_file_of(image)->no_lines || image_file_of(image)->fd < 0)
        return NULL;
    return ask(in, image, address);
}

size_t dec_inlines_without(const struct dec_inlines *in)
{
    return in->without.n;
}

const struct dec_image *dec_inlines_without_at(const struct dec_inlines *in, size_t index)
{
    return in->without.at[index];
}

bool dec_inlines_broke(const struct dec_inlines *in)
{
    return in->fd < 0;
}
