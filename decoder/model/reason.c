/* A stall in words. Numbers come from the kernel: TASK_* (include/linux/sched.h), softirqs
 * (include/linux/interrupt.h). */
#include "decoder/model/model_impl.h"

#include "base/stall_attribute.h"
#include "base/syscalls.h"
#include "base/task_state.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    const char *name;

    const char *verb; /* "thread 1 "x" VERB 40 ms" */
};

static const struct kind kinds[] = {
    [ST_STALL_OFFCPU] = {"offcpu", "off-CPU"},
    [ST_STALL_BUSY] = {"busy", "away from its event loop"},
    [ST_STALL_RUNQ] = {"runq", "runnable without a CPU"},
    [ST_STALL_SYSCALL] = {"syscall", "in a system call"},
    [ST_STALL_FUNC] = {"func", "in a function"},
    [ST_STALL_CALL] = {"call", "called a function"},
    [ST_STALL_SOCKET] = {"socket", "had data waiting in a socket"},
    [ST_STALL_IRQ] = {"irq", "interrupted"},
    [ST_STALL_SOFTIRQ] = {"softirq", "interrupted by a softirq"},
    [ST_STALL_QUIET] = {"quiet", "without its event"},
    [ST_STALL_TRACEPOINT] = {"tracepoint", "hit a tracepoint"},
    [ST_STALL_USDT] = {"usdt", "hit a probe"},
    [ST_STALL_BPFTRACE] = {"bpftrace", "told by a bpftrace script"},
    [ST_STALL_BPF] = {"bpf", "told by a BPF program"},
};

static const struct kind *find_kind(unsigned kind)
{
    static const struct kind unknown = {"?", "stalled"};

    return kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind].name ? &kinds[kind] : &unknown;
}

static const char *verb_of(const struct st_stall_record *s)
{
    if (s->kind == ST_STALL_SOCKET && s->extra_n && !strcmp(s->extra, "side=unaccepted"))
        return "had connections waiting to be accepted";
    return find_kind(s->kind)->verb;
}

const char *model_stall_kind(unsigned kind)
{
    return find_kind(kind)->name;
}

const char *model_measured_state(const struct st_stall_record *s, char *buf, size_t size)
{
    bool measures = s->kind == ST_STALL_OFFCPU || s->kind == ST_STALL_RUNQ;

    return measures || s->state & 0x7ff ? st_task_state(s->state, buf, size) : NULL;
}

int32_t model_in_syscall(const struct st_stall_record *s)
{
    return s->kind == ST_STALL_BUSY && st_stall_attribute(s, "syscall_ns") ? -1 : s->syscall;
}

const char *model_thread_text(uint32_t tid, const char *name, char *buf, size_t size)
{
    if (name[0])
        snprintf(buf, size, "thread %u \"%s\"", tid, name);
    else
        snprintf(buf, size, "thread %u", tid);
    return buf;
}

const char *model_waker(const struct st_stall_record *s, bool by_timer, char *buf, size_t size)
{
    static const char *const softirqs[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                           "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

    buf[0] = '\0';
    switch (s->waker_ctx) {
    case ST_WAKER_TASK:
        model_thread_text(s->waker_tid, s->waker_comm, buf, size);
        break;
    case ST_WAKER_SOFTIRQ:
        if (by_timer)
            snprintf(buf, size, "its own time-out");
        else if (!st_stall_knows_vec(s))
            snprintf(buf, size, "a softirq");
        else if (s->waker_vec < sizeof(softirqs) / sizeof(softirqs[0]))
            snprintf(buf, size, "softirq %s", softirqs[s->waker_vec]);
        else
            snprintf(buf, size, "softirq %u", s->waker_vec);
        break;
    case ST_WAKER_IRQ:
        if (s->waker_irq[0])
            snprintf(buf, size, "irq %u %s", s->waker_vec, s->waker_irq);
        else
            snprintf(buf, size, "%s", by_timer ? "its own time-out" : "an interrupt");
        break;
    case ST_WAKER_NMI:
        snprintf(buf, size, "an NMI");
        break;
    case ST_WAKER_IDLE:
        snprintf(buf, size, "the idle thread");
        break;
    default:
        break;
    }
    return buf;
}

static void append(char *text, size_t size, const char *before, const char *what)
{
    size_t n = strlen(text);

    if (*what && n < size)
        snprintf(text + n, size - n, "%s%s", before, what);
}

/* Of a thread that could run. Who got the CPU of one that a quota keeps off is a bystander, and who had it
 * longest in a wait for it may have had it for a moment. */
static void append_who_had_the_cpu(char *text, size_t size, const struct st_stall_record *s,
                                   uint64_t duration)
{
    bool offcpu = s->kind == ST_STALL_OFFCPU && !(s->state & 0x7ff);
    enum st_quota quota = st_stall_quota(s);
    const char *held = st_stall_attribute(s, "held_ns");
    char next[64], how_long[24];

    if (!offcpu && s->kind != ST_STALL_RUNQ)
        return;
    if (quota == ST_QUOTA_HELD) {
        append(text, size, ", ", "throttled by the CPU quota of its control group");
        return;
    }
    if (!s->next_tid)
        return;
    append(text, size,
           !offcpu                   ? " while the CPU ran "
           : quota == ST_QUOTA_MAYBE ? ", ready to run while its CPU went to "
                                     : ", preempted by ",
           model_thread_text(s->next_tid, s->next_comm, next, sizeof(next)));
    if (!offcpu && held && strtoull(held, NULL, 10) < duration / 2)
        append(text, size, " for ",
               st_format_duration((int64_t)strtoull(held, NULL, 10), how_long, sizeof(how_long)));
}

void model_reason(const struct st_stall_record *s, uint64_t duration, bool going_on, const char *waker,
                  const char *timer, char *text, size_t size)
{
    char how_long[24], call[64];

    if (s->kind == ST_STALL_BPFTRACE) { /* in its own words */
        bool said = s->extra_n > 7 && s->extra_n <= ST_STALL_EXTRA && !strncmp(s->extra, "reason=", 7) &&
                    memchr(s->extra, 0, s->extra_n);

        snprintf(text, size, "thread %u \"%s\" %s", s->tid, s->comm, verb_of(s));
        append(text, size, ": ", said ? s->extra + 7 : "");
        return;
    }
    st_format_duration((int64_t)duration, how_long, sizeof(how_long));
    snprintf(text, size, "thread %u \"%s\" %s", s->tid, s->comm, verb_of(s));
    if (duration || going_on)
        append(text, size, s->flags & ST_STALL_FOUND ? " at least " : " ", how_long);
    if (model_in_syscall(s) >= 0) /* of an event loop that is away it is the last of several things */
        append(text, size, s->kind == ST_STALL_BUSY ? ", now in " : " in ",
               st_syscall_name(s->syscall, s->flags & ST_STALL_COMPAT, call, sizeof(call)));
    append_who_had_the_cpu(text, size, s, duration);
    if (s->kind == ST_STALL_OFFCPU || s->kind == ST_STALL_SYSCALL) { /* not of one wait among others */
        append(text, size, ", woken by ", waker);
        append(text, size, " after timer ", timer);
    }
    if (going_on)
        append(text, size, ", ", "still going on");
}
