/* The stack builder's outside: events in, one thread, one after the other. */
#include "decoder/callstack/stack.h"
#include "decoder/callstack/stack_impl.h"

#include <stdlib.h>

const char *dec_pseudo_name(enum dec_pseudo pseudo)
{
    static const char *const names[DEC_PSEUDO_COUNT] = {"[syscall]", "[interrupt]", "[signal]", "[untraced]"};

    return names[pseudo];
}

int dec_stack_open(const struct dec_stack_config *config, struct dec_stack **stack, struct st_error *err)
{
    struct dec_stack *s = calloc(1, sizeof(*s));

    if (!s)
        return st_nomem(err, "the stack of a thread");
    s->config = *config;
    s->packed.spill = config->spill;
    *stack = s;
    return 0;
}

void dec_stack_close(struct dec_stack *s)
{
    if (!s)
        return;
    stk_drop_parked(s);
    st_vec_free(&s->parked);
    st_vec_free(&s->resumed.path);
    st_vec_free(&s->frames);
    stk_clear_rows(s);
    st_vec_free(&s->blocks);
    free(s->spare);
    st_vec_free(&s->inlined);
    st_vec_free(&s->inserted);
    st_vec_free(&s->parents);
    st_vec_free(&s->active);
    free(s);
}

const struct dec_stack_counts *dec_stack_counts(const struct dec_stack *s)
{
    return &s->counts;
}

/* Intervals off the CPU that have begun belong to the innermost call. */
void stk_advance(struct dec_stack *s, uint64_t time)
{
    struct dec_offcpu *off = s->config.offcpu;
    size_t n = s->config.noffcpu;

    if (time > s->now)
        s->now = time;
    while (s->offcpu_next < n && off[s->offcpu_next].start < s->now) {
        off[s->offcpu_next++].call = s->frames.n ? stk_innermost(s) + 1 : 0;
    }
    while (s->offcpu_done < n && off[s->offcpu_done].end <= s->now) {
        s->offcpu_sum += off[s->offcpu_done].end - off[s->offcpu_done].start;
        s->offcpu_done++;
    }
}

/* The trace's clock can be a little late: the thread may be off the CPU already when it is seen to enter the
 * kernel. */
static void move_offcpu(struct dec_stack *s)
{
    const struct frame *top = stk_top(s);

    if (s->offcpu_next > s->offcpu_done && top && top->kind == FRAME_KERNEL)
        s->config.offcpu[s->offcpu_next - 1].call = top->row + 1;
}

static int begin(struct dec_stack *s, const struct dec_event *e)
{
    s->open = true;
    s->outside = false;
    if (e->kind != DEC_ENABLE)
        return 0;
    if (!(e->to >> 63) && stk_take_exec(s))
        return stk_new_image(s, e->to);
    return stk_island(s, e->to, TDB_CALL_NO_CALL, false);
}

static int enable(struct dec_stack *s, const struct dec_event *e)
{
    const struct frame *top = stk_top(s);

    if (!top)
        return stk_new_image(s, e->to);
    if ((e->flags & DEC_RESUMED) && top->kind != FRAME_KERNEL) {
        s->outside = false;
        return 0;
    }
    return stk_resume(s, e->to);
}

/* A return that follows a skipped call is its second half; after anything else the call is forgotten. */
static void forget_skipped(struct dec_stack *s, const struct dec_event *e)
{
    if (e->kind != DEC_RETURN && !(e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN)))
        s->skipped = false;
}

/* 0 or -1 (no memory). */
static int one(struct dec_stack *s, const struct dec_event *e)
{
    int rc;

    forget_skipped(s, e);
    switch ((enum dec_kind)e->kind) {
    case DEC_COND_JUMP:
        return e->flags & DEC_TAKEN ? stk_jump(s, e) : 0;
    case DEC_JUMP:
    case DEC_FAR_JUMP:
        return stk_jump(s, e);
    case DEC_CALL:
        return stk_call(s, e);
    case DEC_RETURN:
        rc = stk_return(s, e);
        s->skipped = false;
        return rc;
    case DEC_FAR_CALL:
    case DEC_ASYNC:
        rc = stk_enter(s, e);
        move_offcpu(s);
        return rc;
    case DEC_FAR_RETURN:
        return e->to ? stk_resume(s, e->to) : stk_leave(s);
    case DEC_ENABLE:
        return enable(s, e);
    case DEC_DISABLE:
        rc = stk_disable(s, e);
        move_offcpu(s);
        return rc;
    case DEC_GAP:
    case DEC_PTWRITE:
    case DEC_POWER: /* not here */
        break;
    }
    return 0;
}

/* A branch without a target: it left what is traced, or the target was lost. The next event tells. */
static bool is_open_ended(const struct dec_event *e)
{
    return !e->to && (e->kind == DEC_CALL || e->kind == DEC_RETURN || e->kind == DEC_FAR_CALL ||
                      e->kind == DEC_FAR_RETURN);
}

/* An event is told of after its instruction ran: that of a call is the caller's, that of a return the
 * callee's.
 */
static void count(struct dec_stack *s, const struct dec_event *e)
{
    if (!dec_has_counts(e->kind))
        return;
    s->work.instructions += DEC_INSTRUCTIONS(e->arg);
    s->work.cycles += DEC_CYCLES(e->arg);
}

static int step(struct dec_stack *s, const struct dec_event *e, struct st_error *err)
{
    int rc;

    if (s->at && stk_run_inlined(s, e))
        return st_nomem(err, "the calls of a thread");
    stk_advance(s, e->time);
    count(s, e);
    s->exact = e->flags & DEC_TIME_EXACT;
    if (e->kind == DEC_GAP)
        return stk_end_segment(s, err);
    if (!s->open) {
        rc = begin(s, e);
        if (rc || e->kind == DEC_ENABLE)
            return rc ? stk_failed(s, err) : 0;
    }
    return one(s, e) ? stk_failed(s, err) : 0;
}

static int step_on(struct dec_stack *s, const struct dec_event *e, struct st_error *err)
{
    int rc = step(s, e, err);

    if (s->config.inlined)
        stk_note_place(s, e);
    return rc;
}

int dec_stack_events(struct dec_stack *s, const struct dec_event *events, size_t n, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++) {
        if (events[i].kind == DEC_POWER) /* the CPU's, not the thread's */
            continue;
        if (s->has_left) {
            s->has_left = false;
            if (events[i].kind != DEC_GAP)
                rc = step_on(s, &s->left, err);
        }
        if (rc)
            return rc;
        if (is_open_ended(&events[i])) {
            s->left = events[i];
            s->has_left = true;
            continue;
        }
        rc = step_on(s, &events[i], err);
    }
    return rc;
}

/* Whether the thread did nothing more that a trace could hold. */
static bool stayed_away(const struct dec_stack *s, uint64_t end)
{
    size_t n = s->config.noffcpu;

    return s->outside || (n && s->config.offcpu[n - 1].end >= end && end > s->now);
}

int dec_stack_finish(struct dec_stack *s, uint64_t end, struct st_error *err)
{
    s->has_left = false;
    if (stayed_away(s, end)) {
        stk_advance(s, end);
        s->exact = true;
    }
    return stk_end_segment(s, err);
}
