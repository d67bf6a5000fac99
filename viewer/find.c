/* Finding calls by their place in the tree: each step reads a few rows by index, however long the trace is.
 * It relies on the ids (docs/schema.md): of a thread they are one range, in the order of starts, parents
 * before children. */
#include "tracedb/tracedb.h"
#include "viewer/trace.h"

#include <string.h>

/* Steps a search for a neighbour may take before it gives up: neighbours of one depth can be far apart in the
 * tree. */
enum { MOST_STEPS = 400 };

int vw_find_id(struct vw_trace *t, int64_t id, struct vw_found *found, struct st_error *err)
{
    return vw_find_call(t, "c.id = ?1", id, 0, NULL, found, err);
}

int vw_find_longest_of(struct vw_trace *t, int64_t symbol_id, struct vw_found *found, struct st_error *err)
{
    return vw_find_call(
        t, "c.id = (SELECT id FROM call WHERE symbol_id = ?1 ORDER BY duration_ns DESC, id LIMIT 1)",
        symbol_id, 0, NULL, found, err);
}

struct open_search {
    int depth; /* at most; -1: any */

    int64_t id;
};

static int note_open(void *ctx, const struct vw_call *c)
{
    struct open_search *s = ctx;

    if (s->depth < 0 || c->depth <= s->depth)
        s->id = c->id;
    return 0;
}

int vw_find_open(struct vw_trace *t, int64_t thread_id, int64_t time, int depth, struct vw_found *found,
                 struct st_error *err)
{
    struct open_search s = {depth, 0};
    int rc = vw_calls_at(t, thread_id, time, note_open, &s, err);

    return rc || !s.id ? rc : vw_find_id(t, s.id, found, err);
}

int vw_find_from(struct vw_trace *t, int64_t thread_id, int64_t time, struct vw_found *found,
                 struct st_error *err)
{
    return vw_find_call(t,
                        "c.id >= " TDB_FIRST_ID("?1", "?2") " AND c.thread_id = ?1 AND c.start_ns >= ?2 "
                                                            "ORDER BY c.id",
                        thread_id, time, NULL, found, err);
}

static int find_sibling(struct vw_trace *t, const struct vw_found *of, bool forward, struct vw_found *found,
                        struct st_error *err)
{
    if (of->call.parent_id)
        return vw_find_call(t,
                            forward ? "c.parent_id = ?1 AND c.id > ?2 ORDER BY c.id"
                                    : "c.parent_id = ?1 AND c.id < ?2 ORDER BY c.id DESC",
                            of->call.parent_id, of->call.id, NULL, found, err);
    return vw_find_call(t,
                        forward ? "c.parent_id IS NULL AND c.thread_id = ?1 AND c.id > ?2 ORDER BY c.id"
                                : "c.parent_id IS NULL AND c.thread_id = ?1 AND c.id < ?2 ORDER BY c.id DESC",
                        of->thread_id, of->call.id, NULL, found, err);
}

static int find_child(struct vw_trace *t, const struct vw_found *of, bool first, struct vw_found *found,
                      struct st_error *err)
{
    return vw_find_call(t, first ? "c.parent_id = ?1 ORDER BY c.id" : "c.parent_id = ?1 ORDER BY c.id DESC",
                        of->call.id, 0, NULL, found, err);
}

/* Towards the neighbour: down while that is not too deep, else to the sibling, else up. */
int vw_find_neighbour(struct vw_trace *t, const struct vw_found *of, bool forward, struct vw_found *found,
                      struct st_error *err)
{
    struct vw_found at = *of, next;
    bool came_up = true;

    for (int i = 0; i < MOST_STEPS; i++) {
        int rc = 0;

        if (!came_up && at.call.depth == of->call.depth) {
            *found = at;
            found->call.function = found->function;
            found->call.module = found->module;
            return 1;
        }
        if (!came_up && at.call.depth < of->call.depth)
            rc = find_child(t, &at, forward, &next, err);
        if (!rc) {
            rc = find_sibling(t, &at, forward, &next, err);
            came_up = !rc;
            if (!rc && at.call.parent_id)
                rc = vw_find_id(t, at.call.parent_id, &next, err);
        }
        if (rc <= 0)
            return rc;
        at = next;
    }
    return 0;
}

int vw_find_child_from(struct vw_trace *t, const struct vw_found *of, int64_t time, struct vw_found *found,
                       struct st_error *err)
{
    int rc = 0;

    if (time > of->call.start)
        rc = vw_find_open(t, of->thread_id, time, of->call.depth + 1, found, err);
    if (rc > 0 && found->call.parent_id == of->call.id)
        return rc;
    if (rc >= 0)
        rc = vw_find_call(
            t,
            "c.parent_id = ?1 AND c.id >= " TDB_FIRST_ID("(SELECT thread_id FROM call WHERE id = ?1)",
                                                         "?2") " AND c.start_ns >= ?2 ORDER BY c.id",
            of->call.id, time > of->call.start ? time : of->call.start, NULL, found, err);
    if (!rc)
        rc = find_child(t, of, false, found, err);
    return rc;
}

struct longest {
    int64_t from, to, id, duration;
};

static int note_longest(void *ctx, int depth, const struct tdb_block *b)
{
    struct longest *l = ctx;

    (void)depth;

    if (!b->dense && b->start >= l->from && b->start + b->duration <= l->to && b->duration > l->duration) {
        l->id = b->id;
        l->duration = b->duration;
    }
    return 0;
}

/* The coarsest level that holds a child by itself holds the longest one. */
int vw_find_longest_child(struct vw_trace *t, const struct vw_thread *thread, const struct vw_found *of,
                          struct vw_found *found, struct st_error *err)
{
    struct longest l = {of->call.start, of->call.end, 0, -1};
    struct vw_part part = {.level = vw_level(thread, of->call.end - of->call.start),
                           .depth = of->call.depth + 1,
                           .last_depth = of->call.depth + 1,
                           .from = of->call.start,
                           .to = of->call.end};
    int rc = 0;

    for (; !rc && !l.id && part.level >= 0 && part.level >= thread->first_level; part.level -= TDB_LEVEL_STEP)
        rc = vw_each_block(t, thread, &part, note_longest, &l, err);
    if (rc)
        return rc;
    if (l.id)
        return vw_find_id(t, l.id, found, err);
    return vw_find_call(t, "c.parent_id = ?1 ORDER BY c.duration_ns DESC, c.id", of->call.id, 0, NULL, found,
                        err);
}

int vw_find_pattern(struct vw_trace *t, const char *pattern, int64_t id, bool forward, struct vw_found *found,
                    struct st_error *err)
{
    const char *condition = forward ? "c.id = (SELECT min((SELECT id FROM call WHERE symbol_id = y.id AND id "
                                      "> ?1 ORDER BY id LIMIT 1)) FROM symbol y "
                                      "WHERE instr(lower(y.name), lower(?3)))"
                                    : "c.id = (SELECT max((SELECT id FROM call WHERE symbol_id = y.id AND id "
                                      "< ?1 ORDER BY id DESC LIMIT 1)) FROM "
                                      "symbol y WHERE instr(lower(y.name), lower(?3)))";

    return vw_find_call(t, condition, id, 0, pattern, found, err);
}
