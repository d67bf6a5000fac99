/* Other stacks of the same thread: coroutines, fibers. The trace does not show the stack pointer, so they are
 * told by where they go on: a stack that was left in a call goes on behind that call. */
#include "decoder/stack_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARKED = 65536 /* beyond, the stack that was left first is forgotten */
};

static void drop(struct dec_stack *s, size_t i)
{
    free(s->parked.at[i].frames);
    memmove(&s->parked.at[i], &s->parked.at[i + 1], (s->parked.n - i - 1) * sizeof(s->parked.at[0]));
    s->parked.n--;
}

void stk_drop_parked(struct dec_stack *s)
{
    while (s->parked.n)
        free(s->parked.at[--s->parked.n].frames);
}

/* Frames [from, to) are one stack; the innermost is the call that switched away. */
static int park_one(struct dec_stack *s, size_t from, size_t to)
{
    const struct frame *f = &s->frames.at[from];
    struct parked parked = {.ret = s->frames.at[to - 1].ret, .n = to - from};

    if (!parked.ret)
        return 0;
    if (s->parked.n == MOST_PARKED)
        drop(s, 0);
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
        if (s->frames.at[i].island.switched && park_one(s, i, end))
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

/* The frames of a parked stack up to `n`, as an island. */
static int put_back(struct dec_stack *s, const struct parked *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct frame f = {.function = p->frames[i].function,
                          .ret = p->frames[i].ret,
                          .alt = p->frames[i].alt,
                          .kind = i ? p->frames[i].kind : FRAME_BASE,
                          .island = {.switched = true}};

        if (stk_push(s, &f, f.function->symbol, TDB_CALL_NO_CALL) ||
            (i + 1 < p->n && stk_reopen_inlined(s, p->frames[i + 1].ret)))
            return -1;
    }
    return 0;
}

int stk_unpark(struct dec_stack *s, uint64_t address)
{
    for (size_t i = 0; i < s->parked.n; i++) {
        struct parked p = s->parked.at[i];
        int rc;

        if (p.ret != address || p.n < 2)
            continue;
        rc = put_back(s, &p, p.n - 1); /* the innermost frame is the call that switched: it returns now */
        drop(s, i);
        s->counts.switches++;
        return rc ? -1 : 1;
    }
    return 0;
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

int stk_unpark_function(struct dec_stack *s, size_t keep, const struct dec_function *function)
{
    for (size_t i = s->parked.n; i-- > 0;) {
        struct parked p = s->parked.at[i];
        size_t n = p.n;

        while (n > 0 && p.frames[n - 1].function->family != function->family)
            n--;
        if (n == 0)
            continue;
        s->parked.at[i].frames = NULL; /* parking what is left now may forget this one */
        int rc = stk_unwind(s, keep, true) || put_back(s, &p, n);
        free(p.frames);
        for (i = 0; i < s->parked.n && s->parked.at[i].frames; i++)
            ;
        if (i < s->parked.n)
            drop(s, i);
        s->counts.switches++;
        return rc ? -1 : 1;
    }
    return 0;
}
