/* Marks of what tracepoints told: in what state and system call a thread left its CPU, who woke it, and its
 * system calls. Layouts of the raw data: include/trace/events/sched.h, syscalls.h, and of their common part
 * struct trace_entry and enum trace_flag_type (include/linux/trace_events.h, kernel/trace/trace.h). */
#include "base/syscalls.h"
#include "base/task_state.h"
#include "decoder/image/space.h"
#include "decoder/model/model_impl.h"

#include <asm/perf_regs.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_HARDIRQ = 0x08,
    IN_SOFTIRQ = 0x10,
    PREEMPTED = 0x100, /* in sched_switch's state: it could have run on */
};

struct common {
    uint16_t type;

    uint8_t flags, preempt_count;

    int32_t pid;
};

struct switch_raw {
    struct common common;

    char prev_comm[16];

    int32_t prev_pid, prev_prio;

    int64_t prev_state;

    char next_comm[16];

    int32_t next_pid, next_prio;
};

struct waking_raw {
    struct common common;

    char comm[16];

    int32_t pid;
};

struct entry_raw {
    struct common common;

    int64_t number;

    uint64_t arguments[6];
};

struct exit_raw {
    struct common common;

    int64_t number, result;
};

struct points {
    struct dec_model *m;

    struct st_error *err;
};

/* ------------------------------------------------------------------ */
/* What a call chain of the kernel tells                               */

static const char *name_at(const struct dec_model *m, const struct pd_sample *s, uint64_t i)
{
    const struct dec_kernel_name *name;

    if (s->callchain[i] == PERF_CONTEXT_USER)
        return NULL;
    name = dec_sideband_kernel_name(m->sb, s->callchain[i]);
    return name ? name->name : "";
}

/* The system call that a function of the kernel is all of: "futex" for __x64_sys_futex (SYSCALL_DEFINE,
 * arch/x86/include/asm/syscall_wrapper.h); often that one only jumps to what does it, ksys_write. NULL: none.
 * `own`: only the former. */
static const char *syscall_of(const char *function, bool own)
{
    static const char *const before[] = {
        "__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "ksys_", "__sys_", "do_sys_", "kernel_", "do_"};

    for (size_t i = 0; i < (own ? 3 : sizeof(before) / sizeof(before[0])); i++) {
        size_t n = strlen(before[i]);

        if (!strncmp(function, before[i], n) && seccomp_syscall_resolve_name(function + n) >= 0)
            return function + n;
    }
    return NULL;
}

/* Whether the kernel is on its way out (kernel/entry/common.c): what it does there, and be it to end the
 * thread by a signal, is no system call of the program's. */
static bool leaves_kernel(const char *function)
{
    return !strcmp(function, "exit_to_user_mode_loop") || !strcmp(function, "arch_do_signal_or_restart") ||
           !strcmp(function, "get_signal");
}

static const char *syscall_in_chain(const struct dec_model *m, const struct pd_sample *s, bool own)
{
    const char *name, *found = NULL;

    for (uint64_t i = 0; i < s->ncallchain && (name = name_at(m, s, i)); i++) {
        if (leaves_kernel(name))
            return NULL;
        if (syscall_of(name, own))
            found = syscall_of(name, own);
    }
    return found;
}

/* Where the user code goes on; 0: not known. */
static uint64_t user_ip(const struct dec_point *at, const struct pd_sample *s)
{
    const uint64_t mask = at->record.event->attr.sample_regs_user, ip = 1ull << PERF_REG_X86_IP;
    uint64_t i = 0;

    if (s->user_regs && s->user_abi && mask & ip)
        return s->user_regs[__builtin_popcountll(mask & (ip - 1))];
    while (i < s->ncallchain && s->callchain[i] != PERF_CONTEXT_USER)
        i++;
    return i + 1 < s->ncallchain ? s->callchain[i + 1] : 0;
}

/* By the instructions mov $NUMBER, %eax and syscall that it went into the kernel with; -1: others. */
static int32_t number_in_code(const struct dec_point *at, const struct pd_sample *s,
                              const struct dec_thread *t)
{
    uint64_t ip = user_ip(at, s);
    uint8_t code[7];
    int32_t number;

    if (ip < sizeof(code) ||
        dec_space_read(t->process->space, at->time, ip - sizeof(code), code, sizeof(code)) != sizeof(code) ||
        code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
        return -1;
    memcpy(&number, code + 1, sizeof(number));
    return number;
}

/* " in futex"; "" where it is in none. */
static const char *in_syscall(const struct dec_model *m, const struct dec_point *at,
                              const struct pd_sample *s, const struct dec_thread *t, char *text, size_t size)
{
    const char *name = syscall_in_chain(m, s, true);
    bool sure = name;
    char buf[48];
    int32_t number;

    text[0] = '\0';
    if (!name)
        name = syscall_in_chain(m, s, false);
    number = name && !sure && t ? number_in_code(at, s, t) : -1;
    if (number >= 0)
        name = st_syscall_name(number, false, buf, sizeof(buf));
    if (name)
        snprintf(text, size, " in %s", name);
    return text;
}

/* The handler of the softirq that the chain is in; NULL: not known. The innermost, as none interrupts
 * another. */
static const char *softirq_of(const struct dec_model *m, const struct pd_sample *s)
{
    static const struct {
        const char *function, *name;
    } handlers[] = {{"net_rx_action", "NET_RX"},
                    {"net_tx_action", "NET_TX"},
                    {"run_timer_softirq", "TIMER"},
                    {"blk_done_softirq", "BLOCK"},
                    {"irq_poll_softirq", "IRQ_POLL"},
                    {"tasklet_action", "TASKLET"},
                    {"tasklet_hi_action", "HI"},
                    {"run_rebalance_domains", "SCHED"},
                    {"sched_balance_softirq", "SCHED"},
                    {"hrtimer_run_softirq", "HRTIMER"},
                    {"rcu_core_si", "RCU"}};
    const char *name;

    for (uint64_t i = 0; i < s->ncallchain && (name = name_at(m, s, i)); i++)
        for (size_t k = 0; k < sizeof(handlers) / sizeof(handlers[0]); k++)
            if (!strcmp(name, handlers[k].function))
                return handlers[k].name;
    return NULL;
}

/* What in the interrupt wakes: the innermost function that does more than that. */
static const char *irq_function(const struct dec_model *m, const struct pd_sample *s)
{
    static const char *const wake[] = {"bpf_prog_",        "bpf_trace_run", "__bpf_trace_", "__traceiter_",
                                       "try_to_wake_up",   "wake_up_",      "__wake_up",    "default_wake_",
                                       "autoremove_wake_", "ttwu_",         "swake_up_",    "complete"};
    const char *name;

    for (uint64_t i = 0; i < s->ncallchain && (name = name_at(m, s, i)); i++) {
        size_t k = 0;

        while (k < sizeof(wake) / sizeof(wake[0]) && strncmp(name, wake[k], strlen(wake[k])))
            k++;
        if (*name && k == sizeof(wake) / sizeof(wake[0]))
            return name;
    }
    return NULL;
}

/* ------------------------------------------------------------------ */
/* The marks                                                            */

static int keep(struct points *p, const struct dec_point *at, const struct dec_thread *thread,
                const char *name, const char *detail)
{
    struct model_mark mark = {.thread = thread, .cpu = at->cpu, .time = at->time, .name = name};

    snprintf(mark.detail, sizeof(mark.detail), "%s", detail);
    return st_vec_push(&p->m->marks, mark) ? st_nomem(p->err, "the marks") : 0;
}

/* Who got the CPU of a thread that could have run on: ", CPU to thread 7 "x""; "" of one that waits. */
static const char *next_of(const struct switch_raw *raw, char *text, size_t size)
{
    text[0] = '\0';
    if (raw->next_pid && (raw->prev_state & PREEMPTED || !raw->prev_state))
        snprintf(text, size, ", CPU to thread %d \"%.15s\"", raw->next_pid, raw->next_comm);
    return text;
}

static int mark_switch(struct points *p, const struct dec_point *at, const struct pd_sample *s)
{
    const struct dec_thread *t = dec_sideband_thread(p->m->sb, at->tid, at->cpu, at->time);
    struct switch_raw raw;
    char buf[32], call[48], next[64], detail[128];
    const char *state;

    if (s->raw_size < sizeof(raw) || !at->tid || !t)
        return 0;
    memcpy(&raw, s->raw, sizeof(raw));
    state = st_switch_state((uint64_t)raw.prev_state, buf, sizeof(buf));
    snprintf(detail, sizeof(detail), "%s%s%s", state, in_syscall(p->m, at, s, t, call, sizeof(call)),
             next_of(&raw, next, sizeof(next)));
    return keep(p, at, t, "offcpu", detail);
}

/* The name of a thread that is not of the target the recorder tells, if it was still there. */
static void name_waker(const struct points *p, const struct dec_point *at, char *text, size_t size)
{
    const struct dec_thread *t = dec_sideband_thread(p->m->sb, at->tid, at->cpu, at->time);
    const char *name = t ? dec_thread_name(t, at->time) : NULL;
    char key[32];

    snprintf(key, sizeof(key), "comm.%d", at->tid);
    if (!name || !*name)
        name = dec_sideband_meta(p->m->sb, key);
    if (name && *name)
        snprintf(text, size, "thread %d \"%s\"", at->tid, name);
    else
        snprintf(text, size, "thread %d", at->tid);
}

static void waker(const struct points *p, const struct dec_point *at, const struct pd_sample *s,
                  uint8_t flags, char *text, size_t size)
{
    const char *what;
    char who[48], call[48];

    if (flags & IN_HARDIRQ) {
        what = irq_function(p->m, s);
        snprintf(text, size, "by an interrupt%s%s", what ? " in " : "", what ? what : "");
    } else if (flags & IN_SOFTIRQ) {
        what = softirq_of(p->m, s);
        snprintf(text, size, "by softirq%s%s", what ? " " : "", what ? what : "");
    } else if (!at->tid) {
        snprintf(text, size, "by the idle thread");
    } else {
        name_waker(p, at, who, sizeof(who));
        snprintf(text, size, "by %s%s", who, in_syscall(p->m, at, s, NULL, call, sizeof(call)));
    }
}

static int mark_waking(struct points *p, const struct dec_point *at, const struct pd_sample *s)
{
    const struct dec_thread *t;
    struct waking_raw raw;
    char by[96];

    if (s->raw_size < sizeof(raw))
        return 0;
    memcpy(&raw, s->raw, sizeof(raw));
    t = raw.pid > 0 ? dec_sideband_thread(p->m->sb, raw.pid, -1, at->time) : NULL;
    if (!t)
        return 0; /* not of the target */
    waker(p, at, s, raw.common.flags, by, sizeof(by));
    return keep(p, at, t, "woken", by);
}

/* The kernel tells the number only: programs of 32 bits have others. */
static const char *syscall_name(const struct dec_thread *t, uint64_t time, int64_t number, char *buf,
                                size_t size)
{
    return st_syscall_name((int32_t)number, dec_process_is_narrow(t->process, time), buf, size);
}

static int mark_entry(struct points *p, const struct dec_point *at, const struct pd_sample *s)
{
    const struct dec_thread *t = dec_sideband_thread(p->m->sb, at->tid, at->cpu, at->time);
    struct entry_raw raw;
    char name[64], detail[128];
    const uint64_t *a = raw.arguments;

    if (s->raw_size < sizeof(raw) || !t)
        return 0;
    memcpy(&raw, s->raw, sizeof(raw));
    snprintf(detail, sizeof(detail),
             "%s(%#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ")",
             syscall_name(t, at->time, raw.number, name, sizeof(name)), a[0], a[1], a[2], a[3], a[4], a[5]);
    return keep(p, at, t, "syscall", detail);
}

static int mark_exit(struct points *p, const struct dec_point *at, const struct pd_sample *s)
{
    const struct dec_thread *t = dec_sideband_thread(p->m->sb, at->tid, at->cpu, at->time);
    struct exit_raw raw;
    char name[64], detail[128];

    if (s->raw_size < sizeof(raw) || !t)
        return 0;
    memcpy(&raw, s->raw, sizeof(raw));
    snprintf(detail, sizeof(detail), "%s = %" PRId64,
             syscall_name(t, at->time, raw.number, name, sizeof(name)), raw.result);
    return keep(p, at, t, "sysret", detail);
}

static int one_point(struct points *p, const struct dec_point *at)
{
    struct pd_sample s;
    int rc = pd_record_sample(&at->record, &s, p->err);

    if (rc || !s.raw)
        return rc;
    switch (at->kind) {
    case DEC_POINT_SWITCH:
        return mark_switch(p, at, &s);
    case DEC_POINT_WAKING:
        return mark_waking(p, at, &s);
    case DEC_POINT_ENTRY:
        return mark_entry(p, at, &s);
    case DEC_POINT_EXIT:
        return mark_exit(p, at, &s);
    case DEC_POINT_NONE:
        break;
    }
    return 0;
}

/* Wake-ups that the rings held no more. */
static int overwritten(struct points *p)
{
    const struct dec_sideband *sb = p->m->sb;

    for (size_t i = 0; i < sb->point_rings.n; i++) {
        const struct dec_sample_ring *ring = &sb->point_rings.at[i];
        struct dec_gap_row row = {.cpu = ring->cpu,
                                  .ring = DEC_NO_RING,
                                  .start = ring->since,
                                  .end = sb->last,
                                  .reason = dec_gap_name(DEC_GAP_OVERWRITTEN)};
        size_t k = 0;

        while (k < sb->points.n &&
               (sb->points.at[k].kind != DEC_POINT_WAKING || sb->points.at[k].cpu != ring->cpu))
            k++;
        if (k < sb->points.n)
            row.end = sb->points.at[k].time;
        if (ring->overwritten && row.end > row.start &&
            dec_gap_add(&p->m->gaps, &row, "older wake-ups were overwritten in the ring"))
            return st_nomem(p->err, "the gaps");
    }
    return 0;
}

/* CPUs that came or went, as the recorder tells. */
static int unmarked_cpus(struct points *p)
{
    const struct dec_sideband *sb = p->m->sb;
    const char *list = dec_sideband_meta(sb, "unmarked_cpus");
    int32_t cpu;

    while (model_next_cpu(&list, &cpu)) {
        struct dec_gap_row row = {.cpu = cpu,
                                  .ring = DEC_NO_RING,
                                  .start = sb->first,
                                  .end = sb->last,
                                  .reason = dec_gap_name(DEC_GAP_CPU)};

        for (size_t i = 0; i < sb->points.n; i++)
            if (sb->points.at[i].kind == DEC_POINT_WAKING && sb->points.at[i].cpu == row.cpu)
                row.start = sb->points.at[i].time;
        if (dec_gap_add(&p->m->gaps, &row,
                        "the CPU came or went while the recorder was armed: wake-ups on it are missing"))
            return st_nomem(p->err, "the gaps");
    }
    return 0;
}

int model_points(struct dec_model *m, struct st_error *err)
{
    struct points p = {.m = m, .err = err};
    int rc = 0;

    for (size_t i = 0; i < m->sb->points.n && !rc; i++)
        rc = one_point(&p, &m->sb->points.at[i]);
    if (!rc)
        rc = overwritten(&p);
    return rc ? rc : unmarked_cpus(&p);
}
