/* The samples of a recording -> calls and gaps of its threads. */
#include "base/bisect.h"
#include "decoder/dwarf/unwind.h"
#include "decoder/model/model_impl.h"
#include "decoder/model/samples/samples.h"

#include <stdlib.h>
#include <string.h>

enum {
    CALL_BYTES = 5,  /* of a direct call: e8 and a displacement (SDM, vol. 2A, CALL) */
    MOST_BROKEN = 2, /* user frames of a chain that broke off */
    WAY_OUT =
        20000 /* ns between what a trigger and the kernel's record take for the begin of a wait, at most */
};

/* What is at hand while the samples of one thread are looked at. */
struct work {
    struct dec_model *m;

    struct model_thread *t;

    const dec_measured_calls *measured;

    const model_waits *waits;

    size_t wait; /* the next one of the thread */

    struct model_left_out left;

    struct dec_unwind *unwind;

    dec_sample_frames frames;

    ST_VEC(struct dec_chain) chains;

    dec_calls calls;

    struct st_error *err;
};

/* ------------------------------------------------------------------ */
/* Chains                                                               */

static const struct dec_space *space_of(const struct work *w)
{
    return w->t->thread->process->space;
}

static int user_frame(struct work *w, uint64_t time, uint64_t address, bool returns,
                      struct dec_sample_frame *frame)
{
    const struct dec_mapping *mapping = dec_space_find(space_of(w), time, address);
    const struct dec_function *f;

    if (!mapping)
        return 1; /* a register that was no frame pointer */
    f = dec_symbols_function(w->m->symbols, space_of(w), time, address - returns);
    if (!f)
        return -1;
    *frame = (struct dec_sample_frame){.site = address, .symbol = f->symbol};
    return 0;
}

/* What calls those that listen to a tracepoint: the thread would not be there but for us. */
static bool is_tracing(const struct work *w, uint64_t address)
{
    static const char tracing[] = "__traceiter_";
    const struct dec_kernel_name *name = dec_sideband_kernel_name(w->m->sb, address);

    return name && !strncmp(name->name, tracing, sizeof(tracing) - 1);
}

/* What the kernel runs a BPF program by that listens to a tracepoint. */
static bool runs_program(const struct work *w, uint64_t address)
{
    static const char *const names[] = {"bpf_trace_run", "__bpf_trace_", "bpf_prog_"};
    const struct dec_kernel_name *name = dec_sideband_kernel_name(w->m->sb, address);

    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (!strncmp(name->name, names[i], strlen(names[i])))
            return true;
    return false;
}

/* How much of a chain, innermost first, is of the program that wrote it: it is the innermost, and mostly its
 * code has no name. 0: it was the kernel itself. */
static uint64_t of_program(const struct work *w, const struct pd_sample *s)
{
    uint64_t n = 0;

    if (!s->ncallchain || s->callchain[0] != PERF_CONTEXT_KERNEL)
        return 0;
    for (uint64_t i = 1; i < s->ncallchain && s->callchain[i] < PERF_CONTEXT_MAX; i++) {
        if (runs_program(w, s->callchain[i]))
            n = i + 1;
        else if (dec_sideband_kernel_name(w->m->sb, s->callchain[i]))
            break;
    }
    return n;
}

static int kernel_frame(struct work *w, uint64_t time, uint64_t address, bool returns,
                        struct dec_sample_frame *frame)
{
    const struct dec_kernel_name *name = dec_sideband_kernel_name(w->m->sb, address);

    *frame = (struct dec_sample_frame){.site = address, .kernel = true};
    if (name) {
        frame->symbol = dec_symbols_kernel(w->m->symbols, name->name, name->start);
        return frame->symbol == UINT32_MAX ? -1 : 0;
    }
    if (dec_space_find(w->m->sb->kernel, time, address)) {
        const struct dec_function *f =
            dec_symbols_function(w->m->symbols, space_of(w), time, address - returns);

        frame->symbol = f ? f->symbol : 0;
        return f ? 0 : -1;
    }
    frame->symbol = dec_symbols_kernel(w->m->symbols, "[kernel]", 0);
    return frame->symbol == UINT32_MAX ? -1 : 0;
}

/* The function that the direct call before `site` calls, as a frame. 0: there it is, 1: no such call, or
 * through the PLT, -1: no memory. */
static int called_at(struct work *w, uint64_t time, uint64_t site, struct dec_sample_frame *frame)
{
    uint8_t code[CALL_BYTES];
    struct dec_place at;
    int32_t displacement;

    if (dec_space_read(space_of(w), time, site - CALL_BYTES, code, sizeof(code)) != sizeof(code) ||
        code[0] != 0xe8)
        return 1;
    memcpy(&displacement, code + 1, sizeof(displacement));
    dec_space_symbol(space_of(w), time, site + (uint64_t)(int64_t)displacement, &at);
    if (!at.symbol || at.symbol->flags & DEC_SYM_PLT)
        return 1;
    return user_frame(w, time, site + (uint64_t)(int64_t)displacement, false, frame);
}

/* A function that has no frame pointer of its own, or not yet, hides its caller: the chain goes on with the
 * caller's caller. What that one called its code tells. Frames are the innermost first here; the leaf of the
 * user code is the last one. 0 or -1. */
static int uncover_caller(struct work *w, uint64_t time, size_t leaf, uint64_t site)
{
    struct dec_sample_frame hidden;
    int rc = called_at(w, time, site, &hidden);

    if (rc)
        return rc < 0 ? -1 : 0;
    if (hidden.symbol == w->frames.at[leaf].symbol)
        return 0;
    hidden.site = 0;
    return st_vec_push(&w->frames, hidden);
}

static void reverse(struct dec_sample_frame *f, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct dec_sample_frame swap = f[i];

        f[i] = f[n - 1 - i];
        f[n - 1 - i] = swap;
    }
}

/* The frames of a chain, innermost first, appended. 0 or -1. */
static int take_frames(struct work *w, uint64_t time, const struct pd_sample *s)
{
    bool user = false, first = true;
    size_t leaf = 0, users = 0;
    uint64_t own = of_program(w, s);
    int rc = 0;

    for (uint64_t i = 0; i < s->ncallchain && !rc; i++) {
        uint64_t address = s->callchain[i];
        struct dec_sample_frame frame;

        if (address >= PERF_CONTEXT_MAX) {
            user = address == PERF_CONTEXT_USER;
            first = true;
            continue;
        }
        if (i < own || (!user && is_tracing(w, address))) {
            first = false;
            continue;
        }
        rc = user ? user_frame(w, time, address, !first, &frame)
                  : kernel_frame(w, time, address, !first, &frame);
        if (!rc && user && users++ == 1)
            rc = uncover_caller(w, time, leaf, address);
        if (user && users == 1)
            leaf = w->frames.n;
        if (!rc)
            rc = st_vec_push(&w->frames, frame);
        first = false;
    }
    return rc < 0 ? -1 : 0;
}

/* The processor's stack of branches: where the innermost call led, then the calls themselves, newest first
 * (tools/perf/util/machine.c, resolve_lbr_callchain_sample). Returns how many frames they are. */
static size_t branch_frames(const struct pd_sample *s, uint64_t frames[DEC_UNWIND_MOST])
{
    size_t n = 0;

    if (s->nbranches)
        frames[n++] = s->branches[0].to;
    for (uint64_t i = 0; i < s->nbranches && n < DEC_UNWIND_MOST; i++)
        frames[n++] = s->branches[i].from;
    return n;
}

/* User frames that do not stand in the chain. 0 or -1. */
static int take_unwound(struct work *w, const struct dec_sample_record *r, const struct pd_sample *s)
{
    uint64_t addresses[DEC_UNWIND_MOST];
    const struct perf_event_attr *attr = &r->record.event->attr;
    bool branches = attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
    size_t n = branches ? branch_frames(s, addresses) : 0;
    int rc = 0;

    if (s->user_stack)
        n = dec_unwind_sample(w->unwind, space_of(w), s, attr->sample_regs_user, addresses);
    for (size_t i = 0; i < n && !rc; i++) {
        struct dec_sample_frame frame;

        rc = user_frame(w, r->time, addresses[i], i && !branches, &frame);
        if (!rc)
            rc = st_vec_push(&w->frames, frame);
    }
    return rc < 0 ? -1 : 0;
}

static bool begins_with(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Whether the kernel was entered by a fault or an interrupt, or never left (a thread of its own). */
static bool is_no_call(const char *name)
{
    return strstr(name, "exc_") || strstr(name, "error_entry") || strstr(name, "sysvec") ||
           strstr(name, "interrupt") || strstr(name, "_irq") || begins_with(name, "irq") ||
           begins_with(name, "ret_from_fork") || !strcmp(name, "kthread");
}

/* How many of a chain's frames are around the system call that it is in. The call's are those of the kernel
 * and the innermost that are of the same module as the one which entered it: the C library's `read` and what
 * it is made of. Where that is the whole chain, the one which entered. */
static uint32_t outer_frames(const struct work *w, const struct dec_sample_frame *f, uint32_t n)
{
    const struct dec_symbols *symbols = w->m->symbols;
    uint32_t users = 0, outer, module;

    while (users < n && !f[users].kernel)
        users++;
    if (users == n)
        return n;
    if (is_no_call(dec_symbols_at(symbols, f[users].symbol)->name))
        return users ? users : n;
    if (users < 2)
        return 0; /* the chain broke off, or all that is known of it is the kernel's */
    module = dec_symbols_at(symbols, f[users - 1].symbol)->module;
    for (outer = users - 1; outer; outer--)
        if (dec_symbols_at(symbols, f[outer - 1].symbol)->module != module)
            return outer;
    return users - 1;
}

/* The frames behind chain->first, which were appended, are the chain's. 0 or -1. */
static int add_chain(struct work *w, struct dec_chain *chain)
{
    chain->n = (uint32_t)(w->frames.n - chain->first);
    reverse(w->frames.at + chain->first, chain->n);
    chain->outer = outer_frames(w, w->frames.at + chain->first, chain->n);
    return st_vec_push(&w->chains, *chain);
}

static int take_chain(struct work *w, const struct dec_sample_record *r)
{
    struct dec_chain chain = {
        .time = r->time, .first = (uint32_t)w->frames.n, .cpu = r->cpu, .off = r->at_switch};
    struct pd_sample sample;
    int rc = pd_record_sample(&r->record, &sample, w->err);

    if (rc)
        return rc;
    if (take_frames(w, r->time, &sample) || take_unwound(w, r, &sample) || add_chain(w, &chain))
        return st_nomem(w->err, "the call chains");
    return 0;
}

/* The interval off the CPU that the wait is. NULL: the side-band has none, a sample was taken as it began, or
 * none before it: what a thread did is told from its first sample on. */
static const struct dec_offcpu *interval_of(const struct work *w, const struct model_wait *wait)
{
    const struct dec_thread *t = w->t->thread;
    const struct dec_chain *last = w->chains.n ? &w->chains.at[w->chains.n - 1] : NULL;
    uint64_t under_way = wait->start + WAY_OUT;
    size_t i = st_bisect(k, t->offcpu.n, t->offcpu.at[k].end <= under_way);

    if (i >= t->offcpu.n || t->offcpu.at[i].start > under_way)
        return NULL;
    if (!last || (last->off && (!i || last->time >= t->offcpu.at[i - 1].end)))
        return NULL;
    return &t->offcpu.at[i];
}

/* The stack of a wait that a trigger took, where no sample was taken. One without a frame of the user's code
 * does not say what the calls were that went on. 0 or -1. */
static int take_wait(struct work *w, const struct model_wait *wait)
{
    uint64_t addresses[ST_STALL_KSTACK + ST_STALL_USTACK + 2];
    struct pd_sample stack = {.callchain = addresses};
    struct dec_chain chain = {.first = (uint32_t)w->frames.n, .cpu = wait->cpu, .off = true};
    const struct dec_offcpu *o = wait->kernel && wait->user ? interval_of(w, wait) : NULL;

    if (!o)
        return 0;
    chain.time = wait->start < o->start ? wait->start : o->start;
    addresses[stack.ncallchain++] = PERF_CONTEXT_KERNEL;
    for (unsigned i = 0; i < wait->kernel->kstack_n; i++)
        addresses[stack.ncallchain++] = wait->kernel->kstack[i];
    addresses[stack.ncallchain++] = PERF_CONTEXT_USER;
    for (unsigned i = 0; i < wait->user->ustack_n; i++)
        addresses[stack.ncallchain++] = wait->user->ustack[i];
    return take_frames(w, chain.time, &stack) || add_chain(w, &chain) ? -1 : 0;
}

/* The waits up to `time`. 0 or -1. */
static int take_waits(struct work *w, uint64_t time)
{
    int rc = 0;

    for (; w->wait < w->waits->n && !rc; w->wait++) {
        const struct model_wait *wait = &w->waits->at[w->wait];

        if (wait->tid != w->t->thread->tid || wait->start > time)
            break;
        rc = take_wait(w, wait);
    }
    return rc;
}

static size_t users_of(const struct work *w, const struct dec_chain *c)
{
    size_t n = 0;

    while (n < c->n && !w->frames.at[c->first + n].kernel)
        n++;
    return n;
}

/* The function in which most chains begin: the thread's first. UINT32_MAX: nobody knows. Boyer's and Moore's
 * vote. */
static uint32_t base_of(const struct work *w)
{
    uint32_t base = UINT32_MAX;
    size_t votes = 0;

    for (size_t i = 0; i < w->chains.n; i++) {
        const struct dec_chain *c = &w->chains.at[i];
        uint32_t symbol;

        if (users_of(w, c) <= MOST_BROKEN)
            continue;
        symbol = w->frames.at[c->first].symbol;
        if (!votes)
            base = symbol;
        votes += symbol == base ? 1 : (size_t)-1;
    }
    return base;
}

static int mend(struct work *w)
{
    uint32_t base = base_of(w);

    for (size_t i = 0; i < w->chains.n; i++) {
        struct dec_chain *c = &w->chains.at[i];
        size_t users = users_of(w, c);

        c->broken =
            base != UINT32_MAX && users && users <= MOST_BROKEN && w->frames.at[c->first].symbol != base;
    }
    return dec_samples_mend(&w->frames, w->chains.at, w->chains.n);
}

/* ------------------------------------------------------------------ */
/* Segments                                                             */

static int build(struct work *w)
{
    struct dec_thread *thread = w->t->thread;
    const struct dec_sideband *sb = w->m->sb;
    struct dec_samples in = {.frames = w->frames.at,
                             .chains = w->chains.at,
                             .n = w->chains.n,
                             .offcpu = thread->offcpu.at,
                             .noffcpu = thread->offcpu.n,
                             .measured = w->measured,
                             .part_since = w->left.since,
                             .tid = thread->tid};
    const struct dec_chain *chains = w->chains.at;
    struct dec_samples_segment s = {.start = chains[0].time};
    int rc = 0;

    if (model_from_birth(sb, thread) && thread->start < s.start) {
        s.start = thread->start;
        s.born = true;
    }
    for (size_t i = 0, n = w->chains.n; i < n && !rc; i++) {
        const struct dec_notice *loss =
            i + 1 < n ? model_loss_between(w->m, w->t->thread, &chains[i], &chains[i + 1]) : NULL;

        s.n++;
        if (i + 1 < n && !loss)
            continue;
        s.end = loss ? (loss->lost ? chains[i].time : loss->time) : sb->last;
        if (!loss && thread->end < sb->last) {
            s.end = thread->end;
            s.ended = true;
        }
        if (s.end < chains[i].time)
            s.end = chains[i].time;
        rc = dec_samples_calls(&in, &s, &w->calls);
        s = (struct dec_samples_segment){.first = i + 1};
        if (i + 1 < n)
            s.start = chains[i + 1].time;
    }
    return rc;
}

/* ------------------------------------------------------------------ */
/* Thread by thread                                                     */

/* What is known of all threads. */
struct known {
    struct dec_unwind *unwind;

    dec_measured_calls measured;

    model_waits waits;
};

static int take_chains(struct work *w, const struct dec_sample_record *records, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++) {
        rc = take_waits(w, records[i].time) ? st_nomem(w->err, "the call chains") : 0;
        if (!rc)
            rc = take_chain(w, &records[i]);
    }
    if (!rc && take_waits(w, w->t->thread->end))
        rc = st_nomem(w->err, "the call chains");
    return rc;
}

static int one_thread(struct dec_model *m, const struct known *known, const struct dec_sample_record *records,
                      size_t n, struct model_thread *t, struct st_error *err)
{
    struct work w = {.m = m,
                     .t = t,
                     .unwind = known->unwind,
                     .measured = &known->measured,
                     .waits = &known->waits,
                     .wait = model_waits_find(&known->waits, t->thread->tid, t->thread->start),
                     .left = model_left_out(m),
                     .err = err};
    int rc = take_chains(&w, records, n);

    if (!rc && (mend(&w) || build(&w)))
        rc = st_nomem(err, "the calls of a thread");
    if (!rc)
        rc = tdb_calls_add(&t->calls, w.calls.at, NULL, w.calls.n, err);
    if (!rc && model_sample_holes(m, t->thread, w.chains.at, w.chains.n))
        rc = st_nomem(err, "the calls of a thread");
    t->sampled = true;
    if (w.chains.n && w.chains.at[0].time < t->first)
        t->first = w.chains.at[0].time;
    if (w.chains.n && w.chains.at[w.chains.n - 1].time > t->last)
        t->last = w.chains.at[w.chains.n - 1].time;
    st_vec_free(&w.frames);
    st_vec_free(&w.chains);
    st_vec_free(&w.calls);
    return rc;
}

int dec_model_samples(struct dec_model *m, struct st_error *err)
{
    const struct dec_sample_record *s = m->sb->samples.at;
    size_t n = m->sb->samples.n;
    struct known known = {0};
    int rc = dec_unwind_new(&known.unwind, err);

    if (!rc && (dec_measured_find(m->sb, &known.measured) || model_waits_gather(m->sb, &known.waits)))
        rc = st_nomem(err, "the system calls and waits");

    for (size_t i = 0, end; i < n && !rc; i = end) {
        struct model_thread *t;

        for (end = i + 1; end < n && s[end].tid == s[i].tid;)
            if (dec_sideband_thread(m->sb, s[end].tid, s[end].cpu, s[end].time) !=
                dec_sideband_thread(m->sb, s[i].tid, s[i].cpu, s[i].time))
                break;
            else
                end++;
        if (!s[i].tid)
            continue; /* a CPU that has nothing to do */
        t = model_thread_of(m, s[i].pid, s[i].tid, s[i].cpu, s[i].time);
        rc = t ? one_thread(m, &known, &s[i], end - i, t, err) : st_nomem(err, "a thread");
    }
    dec_unwind_free(known.unwind);
    st_vec_free(&known.measured);
    st_vec_free(&known.waits);
    return rc ? rc : model_points(m, err);
}
