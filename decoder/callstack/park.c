/* Other stacks of the same thread: coroutines, fibers. The trace does not show the stack pointer, so they are
 * told by where they go on: a stack that was left in a call goes on behind that call. Where several were left
 * in the same call (all goroutines are, in the runtime's gopark), by where they return to then. */
#include "decoder/callstack/stack_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARKED = 65536 /* different ones; beyond, the stack that was left first is forgotten */
};

static void forget(struct dec_stack *s, size_t i)
{
    free(s->parked.at[i].frames);
    memmove(&s->parked.at[i], &s->parked.at[i + 1], (s->parked.n - i - 1) * sizeof(s->parked.at[0]));
    s->parked.n--;
}

/* One of the stacks that are like parked stack i goes on. */
static void drop(struct dec_stack *s, size_t i)
{
    if (--s->parked.at[i].alike == 0)
        forget(s, i);
}

void stk_drop_parked(struct dec_stack *s)
{
    s->resumed.open = false;
    while (s->parked.n)
        free(s->parked.at[--s->parked.n].frames);
}

/* Whether parked stack p has the same frames. */
static bool is_same(const struct parked *p, const struct frame *f, size_t n)
{
    if (p->n != n)
        return false;
    for (size_t i = n; i-- > 0;) {
        const struct parked_frame *g = &p->frames[i];

        if (g->function != f[i].function || g->ret != f[i].ret || g->alt != f[i].alt || g->kind != f[i].kind)
            return false;
    }
    return true;
}

/* The stack with these frames was left once more. Pools of coroutines wait in a few places: to count them
 * there, and not to keep each, is what makes a switch cheap among thousands. */
static bool count_in(struct dec_stack *s, const struct frame *f, size_t n)
{
    for (size_t i = s->parked.n; i-- > 0;) {
        struct parked p = s->parked.at[i];

        if (p.ret != f[n - 1].ret || !is_same(&p, f, n))
            continue;
        p.alike++;
        memmove(&s->parked.at[i], &s->parked.at[i + 1], (s->parked.n - i - 1) * sizeof(p));
        s->parked.at[s->parked.n - 1] = p; /* it was left last */
        return true;
    }
    return false;
}

/* Frames [from, to) are one stack; the innermost is the call that switched away. */
static int park_one(struct dec_stack *s, size_t from, size_t to)
{
    const struct frame *f = &s->frames.at[from];
    struct parked parked = {.ret = s->frames.at[to - 1].ret, .n = to - from, .alike = 1};

    if (!parked.ret || count_in(s, f, parked.n))
        return 0;
    if (s->parked.n == MOST_PARKED)
        forget(s, 0);
    parked.frames = calloc(parked.n, sizeof(*parked.frames));
    if (!parked.frames)
        return -1;
    for (size_t i = 0; i < parked.n; i++)
        parked.frames[i] = (struct parked_frame){f[i].function, f[i].ret, f[i].alt, f[i].kind};
    if (st_vec_push(&s->parked, parked)) {
        free(parked.frames);
        return -1;
    }
    return 0;
}

int stk_park(struct dec_stack *s, size_t from)
{
    size_t end = s->frames.n;

    for (size_t i = end; i-- > from;) {
        if (s->frames.at[i].kind != FRAME_BASE)
            continue;
        if (s->frames.at[i].partial.switched && park_one(s, i, end))
            return -1;
        end = i;
    }
    return 0;
}

int stk_park_frames(struct dec_stack *s, size_t from)
{
    return park_one(s, from, s->frames.n);
}

int stk_park_jumped(struct dec_stack *s, size_t from)
{
    size_t end = from + 1;

    while (end < s->frames.n && s->frames.at[end].kind != FRAME_BASE)
        end++;
    if (!(stk_row(s, s->frames.at[from].row)->call.flags & TDB_CALL_TAIL))
        from++;
    return end - from > 1 && s->frames.at[from].kind == FRAME_CALL ? park_one(s, from, end) : 0;
}

/* The frames of a parked stack up to `n`, as a partial stack. */
static int put_back(struct dec_stack *s, const struct parked *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct frame f = {.function = p->frames[i].function,
                          .ret = p->frames[i].ret,
                          .alt = p->frames[i].alt,
                          .kind = i ? p->frames[i].kind : FRAME_BASE,
                          .partial = {.switched = true}};

        if (stk_push(s, &f, f.function->symbol, TDB_CALL_NO_CALL) ||
            (i + 1 < p->n && stk_reopen_inlined(s, p->frames[i + 1].ret)))
            return -1;
    }
    return 0;
}

/* Whether two stacks have the same n outermost frames: it makes no difference then which of them it is. */
static bool are_alike(const struct parked *a, const struct parked *b, size_t n)
{
    for (size_t i = n; i-- > 0;)
        if (a->frames[i].function != b->frames[i].function || a->frames[i].ret != b->frames[i].ret)
            return false;
    return true;
}

/* Stacks of which any may be the one that goes on. */
struct choice {
    size_t n, first; /* the one that was left first */

    bool alike;
};

/* Adds parked stack i, whose frames up to `outer` are not known to be those of the others. */
static void consider(const struct dec_stack *s, struct choice *c, size_t i, size_t outer)
{
    const struct parked *p = &s->parked.at[i], *first = &s->parked.at[c->n ? c->first : i];

    if (!c->n)
        *c = (struct choice){.first = i, .alike = true};
    c->n++;
    c->alike = c->alike && p->n == first->n && are_alike(p, first, outer);
}

/* Begins with what all of them have in common: the function that is gone back to. */
static int resume_unsettled(struct dec_stack *s, const struct parked *p)
{
    struct frame f = {
        .function = p->frames[p->n - 2].function, .kind = FRAME_BASE, .partial = {.switched = true}};

    if (stk_push(s, &f, f.function->symbol, TDB_CALL_NO_CALL) || stk_reopen_inlined(s, p->ret))
        return -1;
    s->resumed.open = true;
    s->resumed.row = stk_top(s)->partial.row;
    s->resumed.ret = p->ret;
    s->resumed.path.n = 0;
    return 1;
}

int stk_unpark(struct dec_stack *s, uint64_t address)
{
    struct choice c = {0};
    struct parked p;
    int rc;

    for (size_t i = 0; i < s->parked.n && (!c.n || c.alike); i++)
        if (s->parked.at[i].ret == address && s->parked.at[i].n > 1)
            consider(s, &c, i, s->parked.at[i].n - 1);
    if (!c.n)
        return 0;
    s->counts.switches++;
    p = s->parked.at[c.first];
    if (!c.alike)
        return resume_unsettled(s, &p);
    rc = put_back(s, &p, p.n - 1); /* the innermost frame is the call that switched: it returns now */
    drop(s, c.first);
    return rc ? -1 : 1;
}

/* Whether parked stack p may be the one that goes on; *base becomes the index of the frame that the partial
 * stack's base stands for. */
static bool may_be(const struct dec_stack *s, const struct parked *p, size_t *base)
{
    const struct resumed *r = &s->resumed;

    if (p->ret != r->ret || p->n < 2 + r->path.n)
        return false;
    *base = p->n - 2 - r->path.n;
    for (size_t i = 0; i < r->path.n; i++)
        if (p->frames[p->n - 2 - i].ret != r->path.at[i])
            return false;
    return true;
}

/* The frames around the one of index `base`, which is the partial stack's base. */
static int put_around(struct dec_stack *s, const struct parked *p, size_t base)
{
    size_t at = s->frames.n - 1;

    for (; base > 0 && p->frames[base].kind == FRAME_CALL; base--)
        if (stk_base_called(s, at, p->frames[base - 1].function, &p->frames[base]))
            return -1;
    return 0;
}

int stk_settle(struct dec_stack *s, uint64_t address)
{
    struct choice c = {0};
    struct parked p;
    size_t base;
    int rc;

    if (!s->resumed.open || stk_top(s)->partial.row != s->resumed.row)
        return 0;
    for (size_t i = 0; i < s->parked.n; i++)
        if (may_be(s, &s->parked.at[i], &base) && base > 0 && s->parked.at[i].frames[base].ret == address)
            consider(s, &c, i, base);
    s->resumed.open = c.n > 0 && !c.alike;
    if (!c.n)
        return 0;
    p = s->parked.at[c.first];
    base = p.n - 2 - s->resumed.path.n;
    if (st_vec_push(&s->resumed.path, address) || stk_base_returned(s, p.frames[base - 1].function, address))
        return -1;
    if (!c.alike)
        return 1;
    rc = put_around(s, &p, base - 1);
    drop(s, c.first);
    return rc ? -1 : 1;
}

int stk_unpark_caller(struct dec_stack *s, uint64_t address)
{
    for (size_t i = 0; i < s->parked.n; i++) {
        struct parked p = s->parked.at[i];
        size_t n = p.n;
        int rc;

        while (n > 1 && p.frames[n - 1].ret != address)
            n--;
        if (n < 2)
            continue;
        rc = put_back(s, &p, n - 1);
        drop(s, i);
        s->counts.switches++;
        return rc ? -1 : 1;
    }
    return 0;
}

/* Unwinds to `keep` frames, and puts parked stack i back up to its frame n. */
static int leave_for(struct dec_stack *s, size_t keep, size_t i, size_t n)
{
    struct parked p = s->parked.at[i];
    int rc;

    p.frames = malloc(p.n * sizeof(*p.frames)); /* parking what is left now may forget it */
    if (!p.frames)
        return -1;
    memcpy(p.frames, s->parked.at[i].frames, p.n * sizeof(*p.frames));
    drop(s, i);
    rc = stk_unwind(s, keep, true) || put_back(s, &p, n);
    free(p.frames);
    s->counts.switches++;
    return rc ? -1 : 0;
}

int stk_unpark_function(struct dec_stack *s, size_t keep, const struct dec_function *function)
{
    for (size_t i = s->parked.n; i-- > 0;) {
        struct parked p = s->parked.at[i];
        size_t n = p.n;

        while (n > 0 && !dec_same_family(p.frames[n - 1].function, function))
            n--;
        if (n == 0)
            continue;
        return leave_for(s, keep, i, n) ? -1 : 1;
    }
    return 0;
}
