/* The graph of a decode, with walks over it that wait for the next ring.
 *
 * Nothing of a graph depends on the ring: code epochs are of address spaces, which do not change while the
 * session lives. A graph that has become large is left to those that walk over it, and a new one is begun. */
#include "decoder/pt/session.h"

#include <stdlib.h>

enum {
    NODES = 1 << 21, /* of a graph that is lent once more: some 100 bytes each, and 32 for each walk */
    RUNS = 1 << 20,  /* of libipt's walk */
};

struct session_graph {
    struct fast_graph graph;

    unsigned users;
};

struct dec_session {
    pthread_mutex_t lock;

    size_t bytes; /* of trace in all rings */

    struct session_graph *graph; /* NULL: none yet */

    ST_VEC(struct session_lent) idle; /* over `graph`, or without one */
};

int dec_session_new(size_t bytes, struct dec_session **session, struct st_error *err)
{
    struct dec_session *s = calloc(1, sizeof(*s));
    if (!s)
        return st_nomem(err, "the flow decoder");
    s->bytes = bytes;
    pthread_mutex_init(&s->lock, NULL);
    *session = s;
    return 0;
}

static void free_lent(struct session_lent *lent)
{
    fast_free(lent->fast);
    code_free(lent->code);
}

static void drop_graph(struct session_graph *g)
{
    if (!g || g->users)
        return;
    fast_graph_free(&g->graph);
    free(g);
}

void dec_session_free(struct dec_session *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->idle.n; i++)
        free_lent(&s->idle.at[i]);
    st_vec_free(&s->idle);
    drop_graph(s->graph);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Of a graph that is full enough nothing is lent any more. */
static void retire(struct dec_session *s)
{
    if (!s->graph || fast_graph_count(&s->graph->graph) < NODES)
        return;
    for (size_t i = 0; i < s->idle.n; i++) {
        fast_free(s->idle.at[i].fast);
        s->idle.at[i].fast = NULL;
    }
    drop_graph(s->graph);
    s->graph = NULL;
}

static struct session_graph *new_graph(size_t bytes)
{
    struct session_graph *g = calloc(1, sizeof(*g));
    if (g && fast_graph_new(&g->graph, bytes, NULL) == 0)
        return g;
    free(g);
    return NULL;
}

/* The fast walk: of options->no_tnt and `reference` there is none. */
static void lend_fast(struct dec_session *s, struct walk *w, struct session_lent *lent)
{
    if (!s->graph)
        s->graph = new_graph(s->bytes);
    if (lent->fast)
        fast_lend(lent->fast, w);
    else if (!s->graph || fast_new(&lent->fast, &s->graph->graph, w, NULL))
        return;
    lent->graph = s->graph;
    lent->graph->users++;
}

int session_lend(struct dec_session *s, struct walk *w, struct session_lent *lent, struct st_error *err)
{
    *lent = (struct session_lent){0};
    pthread_mutex_lock(&s->lock);
    retire(s);
    if (s->idle.n)
        *lent = s->idle.at[--s->idle.n];
    if (!w->options->reference && !w->options->config.no_tnt)
        lend_fast(s, w, lent);
    pthread_mutex_unlock(&s->lock);
    if (!lent->code && code_new(&lent->code, err)) {
        session_return(s, lent);
        return ST_ENOMEM;
    }
    return 0;
}

void session_return(struct dec_session *s, struct session_lent *lent)
{
    pthread_mutex_lock(&s->lock);
    if (lent->graph && lent->graph != s->graph) {
        fast_free(lent->fast);
        lent->fast = NULL;
    }
    if (lent->graph) {
        lent->graph->users--;
        if (lent->graph != s->graph)
            drop_graph(lent->graph);
        lent->graph = NULL;
    }
    if (lent->code && code_count(lent->code) > RUNS) {
        code_free(lent->code);
        lent->code = NULL;
    }
    if (st_vec_push(&s->idle, *lent))
        free_lent(lent);
    pthread_mutex_unlock(&s->lock);
}
