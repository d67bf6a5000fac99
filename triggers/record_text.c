/* A record as a line for a person. */
#include "triggers/record_text.h"
#include "base/safetext.h"
#include "base/stall_attribute.h"
#include "base/syscalls.h"
#include "base/units.h"
#include "triggers/bpf/timeout.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void trg_put(struct trg_out *o, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(o->text + o->used, o->size - o->used, fmt, ap);
    va_end(ap);
    if (n > 0)
        o->used += (size_t)n < o->size - o->used ? (size_t)n : o->size - o->used - 1;
}

void trg_put_thread(struct trg_out *o, uint32_t tid, const char *comm)
{
    char name[17], safe[68];

    snprintf(name, sizeof(name), "%.16s", comm);
    st_safe_text(safe, sizeof(safe), name);
    trg_put(o, "thread %u", tid);
    if (safe[0])
        trg_put(o, " \"%s\"", safe);
}

void trg_put_syscall(struct trg_out *o, const struct st_stall_record *r)
{
    char name[64];

    if (r->syscall >= 0)
        trg_put(o, " in %s", st_syscall_name(r->syscall, r->flags & ST_STALL_COMPAT, name, sizeof(name)));
    else if (r->state && r->ustack_n)
        trg_put(o, " outside of system calls (page fault)");
}

static bool is_named(trg_ksym_fn *name, void *ctx, uint64_t address, const char *expected)
{
    const char *symbol = name && address ? name(ctx, address) : NULL;

    return symbol && !strcmp(symbol, expected);
}

/* The timer of the wait itself wakes out of hrtimer_wakeup() (kernel/time/hrtimer.c) or process_timeout()
 * (kernel/time/sleep_timeout.c), which wake nobody else; the latter leaves no frame of its own. */
static bool by_own_timer(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    bool expired = is_named(name, ctx, r->timer_func, "process_timeout");

    for (size_t i = 0; i < st_stall_waker_kernel(r); i++)
        if (is_named(name, ctx, r->wstack[i], "hrtimer_wakeup") ||
            (expired && i < 3 && is_named(name, ctx, r->wstack[i], "call_timer_fn")))
            return true;
    return false;
}

/* The length is that of the call: not told of a wait of another length, the call's second one. */
static void put_own_timer(struct trg_out *o, const struct st_stall_record *r)
{
    const char *asked = trg_attribute(r, "timeout_ns");
    int64_t ns = asked ? strtoll(asked, NULL, 10) : 0, slept = (int64_t)(r->wake_ktime - r->start_ktime);
    char text[24];

    trg_put(o, ", woken by its own time-out");
    if (asked && r->wake_ktime && ST_TIMEOUT_FITS(ns, slept))
        trg_put(o, " of %s", st_format_duration(ns, text, sizeof(text)));
}

void trg_put_timer(struct trg_out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    const char *symbol = r->timer_func && name ? name(ctx, r->timer_func) : NULL;
    char safe[128];

    if (!r->timer_func)
        return;
    if (!symbol) {
        trg_put(o, " after timer 0x%llx", (unsigned long long)r->timer_func);
        return;
    }
    st_safe_text(safe, sizeof(safe), symbol);
    trg_put(o, " after timer %s", safe);
}

static void put_irq(struct trg_out *o, const struct st_stall_record *r)
{
    char handler[17], safe[68];

    snprintf(handler, sizeof(handler), "%.16s", r->waker_irq);
    st_safe_text(safe, sizeof(safe), handler);
    if (safe[0])
        trg_put(o, ", woken by irq %u %s", r->waker_vec, safe);
    else
        trg_put(o, ", woken by an interrupt");
}

void trg_put_waker(struct trg_out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    static const char *const softirqs[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                           "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

    if ((r->waker_ctx == ST_WAKER_SOFTIRQ || r->waker_ctx == ST_WAKER_IRQ) && by_own_timer(r, name, ctx)) {
        put_own_timer(o, r);
        return;
    }
    switch (r->waker_ctx) {
    case ST_WAKER_TASK:
        trg_put(o, ", woken by ");
        trg_put_thread(o, r->waker_tid, r->waker_comm);
        break;
    case ST_WAKER_SOFTIRQ:
        if (st_stall_knows_vec(r) && r->waker_vec < sizeof(softirqs) / sizeof(softirqs[0]))
            trg_put(o, ", woken by softirq %s", softirqs[r->waker_vec]);
        else
            trg_put(o, ", woken by a softirq");
        trg_put_timer(o, r, name, ctx);
        break;
    case ST_WAKER_IRQ:
        put_irq(o, r);
        break;
    case ST_WAKER_NMI:
        trg_put(o, ", woken by an NMI");
        break;
    case ST_WAKER_IDLE:
        trg_put(o, ", woken by an idle CPU");
        break;
    default:
        if (r->state && r->flags & ST_STALL_UNTRACED)
            trg_put(o, ", woken by what this kernel did not trace");
        break;
    }
}

/* The wait is over, but the CPU was not free. */
void trg_put_run_queue(struct trg_out *o, const struct st_stall_record *r)
{
    uint64_t waited = r->wake_ktime && r->end_ktime > r->wake_ktime ? r->end_ktime - r->wake_ktime : 0;
    char text[24];

    if (waited * 10 >= r->measured_ns && waited > 100000)
        trg_put(o, " and then %s in the run queue", st_format_duration((int64_t)waited, text, sizeof(text)));
}

void trg_put_time(struct trg_out *o, const struct st_stall_record *r)
{
    char took[24];

    trg_put(o, "%s %s", r->flags & ST_STALL_FOUND ? " at least" : "",
            st_format_duration((int64_t)r->measured_ns, took, sizeof(took)));
    if (r->flags & ST_STALL_ONGOING)
        trg_put(o, " so far");
}

const char *trg_attribute(const struct st_stall_record *r, const char *key)
{
    return st_stall_attribute(r, key);
}

void trg_put_attribute(struct trg_out *o, const struct st_stall_record *r, const char *key,
                       const char *fmt_before, const char *after)
{
    const char *value = trg_attribute(r, key);
    char safe[4 * ST_STALL_EXTRA];

    if (!value)
        return;
    st_safe_text(safe, sizeof(safe), value);
    trg_put(o, "%s%s%s", fmt_before, safe, after);
}

void trg_add_attribute(struct st_stall_record *r, const char *key, const char *value)
{
    size_t room = ST_STALL_EXTRA - r->extra_n, n = strlen(key) + 1 + strlen(value) + 1;

    if (r->extra_n > ST_STALL_EXTRA || n > room || trg_attribute(r, key))
        return;
    snprintf(r->extra + r->extra_n, room, "%s=%s", key, value);
    r->extra_n = (st_u16)(r->extra_n + n);
}

void trg_put_attributes(struct trg_out *o, const struct st_stall_record *r)
{
    char safe[4 * ST_STALL_EXTRA];

    for (size_t at = 0; at < r->extra_n; at += strnlen(r->extra + at, r->extra_n - at) + 1) {
        if (!memchr(r->extra + at, 0, r->extra_n - at))
            return;
        st_safe_text(safe, sizeof(safe), r->extra + at);
        trg_put(o, "%s%s", at ? " " : " (", safe);
    }
    if (r->extra_n)
        trg_put(o, ")");
}

void trg_process_text(uint32_t pid, char *text, size_t size)
{
    char path[64], name[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%u/comm", pid);
    f = fopen(path, "re");
    if (f && fgets(name, sizeof(name), f))
        name[strcspn(name, "\n")] = '\0';
    if (f)
        fclose(f);
    if (name[0])
        snprintf(text, size, "process %u \"%s\"", pid, name);
    else
        snprintf(text, size, "process %u", pid);
}
