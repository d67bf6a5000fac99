/* From one instruction to the next: what the encoder is told. */
#include "recorder/sources/step/helper.h"

enum {
    TIME_STEP = 10 * 1000,   /* ns: calls and returns get a TSC when the last one is older */
    TIME_IDLE = 1000 * 1000, /* and everything else */
    TIME_LOOK = 32,          /* instructions between looks at the clock where nothing calls */
};

void (*step_executed)(pid_t tid, uint64_t ip);

static uint64_t wrap(const struct step_thread *t, uint64_t ip)
{
    return t->mode == PTENC_MODE_32 ? (uint32_t)ip : ip;
}

static uint64_t next_of(const struct step_thread *t)
{
    return wrap(t, t->ip + t->insn.length);
}

static uint64_t target_of(const struct step_thread *t)
{
    return wrap(t, t->ip + t->insn.length + (uint64_t)(int64_t)t->insn.displacement);
}

bool step_leads_to(const struct step_thread *t, uint64_t to)
{
    switch ((enum step_kind)t->insn.kind) {
    case STEP_PLAIN:
    case STEP_PUSHF:
    case STEP_POPF:
        return to == next_of(t);
    case STEP_COND:
        return to == next_of(t) || to == target_of(t);
    case STEP_JUMP:
    case STEP_CALL:
        return to == target_of(t);
    case STEP_JUMP_INDIRECT:
    case STEP_CALL_INDIRECT:
    case STEP_RET:
    case STEP_FAR:
    case STEP_IRET:
        return true;
    case STEP_REP:
        return to == t->ip || to == next_of(t);
    case STEP_SYSCALL:
    case STEP_TRAP:
    case STEP_BAD:
    case STEP_UNREAD:
        break;
    }
    return false;
}

/* ------------------------------------------------------------------ */
/* Time                                                                */

static void tell_time(struct step_helper *h, struct step_thread *t, uint64_t older_than)
{
    uint64_t now = step_clock_now(&h->clock);

    t->since_time = 0;
    if (now - ptenc_last_time(&t->enc) >= older_than)
        ptenc_time(&t->enc, now);
}

static void enter(struct step_helper *h, struct step_thread *t)
{
    tell_time(h, t, 0);
    ptenc_enable(&t->enc, t->ip, t->mode);
}

void step_leave(struct step_helper *h, struct step_thread *t)
{
    if (!ptenc_enabled(&t->enc))
        return;
    tell_time(h, t, 0);
    ptenc_disable_async(&t->enc, t->ip);
}

/* ------------------------------------------------------------------ */
/* Instructions                                                        */

static void walk_far(struct step_thread *t, uint64_t to)
{
    struct user_regs_struct regs;

    if (step_get_regs(t, &regs))
        t->mode = regs.cs == 0x23 ? PTENC_MODE_32 : PTENC_MODE_64;
    ptenc_far(&t->enc, to, t->mode);
}

static void walk_call(struct step_thread *t)
{
    if (t->insn.kind == STEP_CALL_INDIRECT || t->insn.displacement)
        ptenc_call(&t->enc, next_of(t));
}

/* What the executed instruction, which can lead to `to`, means in packets. */
static void encode(struct step_helper *h, struct step_thread *t, uint64_t to)
{
    struct user_regs_struct regs;

    switch ((enum step_kind)t->insn.kind) {
    case STEP_COND:
        ptenc_cond(&t->enc, to != next_of(t), to);
        break;
    case STEP_CALL:
        tell_time(h, t, TIME_STEP);
        walk_call(t);
        break;
    case STEP_CALL_INDIRECT:
        tell_time(h, t, TIME_STEP);
        walk_call(t);
        ptenc_indirect(&t->enc, to);
        break;
    case STEP_JUMP_INDIRECT:
        ptenc_indirect(&t->enc, to);
        break;
    case STEP_RET:
        tell_time(h, t, TIME_STEP);
        ptenc_ret(&t->enc, to);
        break;
    case STEP_FAR:
        walk_far(t, to);
        break;
    case STEP_PUSHF:
        if (step_get_regs(t, &regs))
            step_hide_trap_flag(t, regs.rsp);
        break;
    case STEP_IRET:
        t->own_tf = t->pops_tf;
        walk_far(t, to);
        break;
    case STEP_POPF:
        t->own_tf = t->pops_tf;
        break;
    default:
        break;
    }
}

static void executed(struct step_helper *h, struct step_thread *t, uint64_t to)
{
    uint64_t from = t->ip;

    if (!ptenc_enabled(&t->enc))
        enter(h, t);
    else if (++t->since_time >= TIME_LOOK)
        tell_time(h, t, TIME_IDLE);
    if (step_executed && !(t->insn.kind == STEP_REP && to == t->ip))
        step_executed(t->tid, t->ip);
    encode(h, t, to);
    t->ip = to;
    if (t->proc->rseq_watch)
        step_rseq_look(t, from);
    atomic_store_explicit(&h->shared->steps,
                          atomic_load_explicit(&h->shared->steps, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void look_at(struct step_thread *t)
{
    t->insn = *step_code_at(&t->proc->code, t->ip, t->mode);
}

/* Instructions after which no trap comes (MOV SS, those that the kernel emulates): two were executed in one
 * step. */
static bool walk_two(struct step_helper *h, struct step_thread *t, uint64_t to)
{
    struct step_thread second;

    if (t->insn.kind != STEP_PLAIN)
        return false;
    second = *t;
    second.ip = next_of(t);
    look_at(&second);
    if (second.insn.kind == STEP_REP || !step_leads_to(&second, to))
        return false;
    executed(h, t, second.ip);
    t->insn = second.insn;
    executed(h, t, to);
    return true;
}

/* A call into the vsyscall page: the kernel did it and returned, and the instruction there was executed. */
static void walk_vsyscall(struct step_helper *h, struct step_thread *t, uint64_t to)
{
    if (!ptenc_enabled(&t->enc))
        enter(h, t);
    step_leave(h, t);
    t->ip = t->vsyscall_return;
    t->vsyscall_return = 0;
    if (to == t->ip)
        return;
    look_at(t);
    step_walk(h, t, to);
}

/* A restartable sequence that was aborted, or another thread wrote code: as an event that interrupted the
 * program here and let it go on there. */
static void walk_unexplained(struct step_helper *h, struct step_thread *t, uint64_t to)
{
    uint64_t abort = t->rseq_abort;

    if (!ptenc_enabled(&t->enc))
        enter(h, t);
    step_leave(h, t);
    t->rseq_abort = 0;
    t->ip = abort ? abort : to;
    if (!abort) {
        step_rseq_suspect(t);
    } else if (to != abort) {
        look_at(t);
        step_walk(h, t, to);
    }
}

void step_walk(struct step_helper *h, struct step_thread *t, uint64_t to)
{
    if (t->vsyscall_return) {
        walk_vsyscall(h, t, to);
        return;
    }
    if (!step_leads_to(t, to) && step_code_changed(&t->proc->code, t->ip, t->mode))
        look_at(t);
    if (step_leads_to(t, to)) {
        executed(h, t, to);
        return;
    }
    if (to == t->ip || walk_two(h, t, to))
        return;
    walk_unexplained(h, t, to);
}
