/* An offcpu record as a line for a person. */
#include "base/safetext.h"
#include "base/units.h"
#include "triggers/offcpu.h"
#include "triggers/syscalls.h"

#include <stdarg.h>
#include <string.h>

struct out {
    char *text;

    size_t size, used;
};

static void put(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct out *o, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(o->text + o->used, o->size - o->used, fmt, ap);
    va_end(ap);
    if (n > 0)
        o->used += (size_t)n < o->size - o->used ? (size_t)n : o->size - o->used - 1;
}

static void put_thread(struct out *o, uint32_t tid, const char *comm)
{
    char name[17], safe[68];

    snprintf(name, sizeof(name), "%.16s", comm);
    st_safe_text(safe, sizeof(safe), name);
    put(o, "thread %u", tid);
    if (safe[0])
        put(o, " \"%s\"", safe);
}

static void put_syscall(struct out *o, const struct st_stall_record *r)
{
    const char *name = r->flags & ST_STALL_COMPAT ? NULL : trg_syscall_name(r->syscall);

    if (name)
        put(o, " in %s", name);
    else if (r->syscall >= 0)
        put(o, " in %ssystem call %d", r->flags & ST_STALL_COMPAT ? "32-bit " : "", r->syscall);
    else if (r->state && r->ustack_n)
        put(o, " outside of system calls (page fault)");
}

/* A hrtimer's wake-up runs in the timer interrupt, which has no handler's name; the stack tells. */
static bool by_own_timer(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    for (size_t i = 0; name && i < r->wstack_n && i < ST_STALL_WSTACK; i++) {
        const char *symbol = name(ctx, r->wstack[i]);

        if (symbol && !strcmp(symbol, "hrtimer_wakeup"))
            return true;
    }
    return false;
}

static void put_timer(struct out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    const char *symbol = r->timer_func && name ? name(ctx, r->timer_func) : NULL;
    char safe[128];

    if (!r->timer_func)
        return;
    if (!symbol) {
        put(o, " after timer 0x%llx", (unsigned long long)r->timer_func);
        return;
    }
    st_safe_text(safe, sizeof(safe), symbol);
    put(o, " after timer %s", safe);
}

static void put_irq(struct out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    char handler[17], safe[68];

    snprintf(handler, sizeof(handler), "%.16s", r->waker_irq);
    st_safe_text(safe, sizeof(safe), handler);
    if (safe[0])
        put(o, ", woken by irq %u %s", r->waker_vec, safe);
    else
        put(o, ", woken by %s", by_own_timer(r, name, ctx) ? "its time-out" : "an interrupt");
}

static void put_waker(struct out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx)
{
    static const char *const softirqs[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                           "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

    switch (r->waker_ctx) {
    case ST_WAKER_TASK:
        put(o, ", woken by ");
        put_thread(o, r->waker_tid, r->waker_comm);
        break;
    case ST_WAKER_SOFTIRQ:
        put(o, ", woken by softirq %s",
            r->waker_vec < sizeof(softirqs) / sizeof(softirqs[0]) ? softirqs[r->waker_vec] : "?");
        put_timer(o, r, name, ctx);
        break;
    case ST_WAKER_IRQ:
        put_irq(o, r, name, ctx);
        break;
    case ST_WAKER_NMI:
        put(o, ", woken by an NMI");
        break;
    case ST_WAKER_IDLE:
        put(o, ", woken by an idle CPU");
        break;
    default:
        break;
    }
}

/* The wait is over, but the CPU was not free. */
static void put_run_queue(struct out *o, const struct st_stall_record *r)
{
    uint64_t waited = r->wake_ktime && r->end_ktime > r->wake_ktime ? r->end_ktime - r->wake_ktime : 0;
    char text[24];

    if (waited * 10 >= r->measured_ns && waited > 100000)
        put(o, " and then %s in the run queue", st_format_duration((int64_t)waited, text, sizeof(text)));
}

void trg_offcpu_describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text,
                         size_t size)
{
    struct out o = {text, size, 0};
    char took[24];

    st_format_duration((int64_t)r->measured_ns, took, sizeof(took));
    put(&o, "off-CPU %s", took);
    if (r->flags & ST_STALL_ONGOING)
        put(&o, " so far");
    if (!r->state) {
        put(&o, ", preempted");
        if (r->next_tid) {
            put(&o, " by ");
            put_thread(&o, r->next_tid, r->next_comm);
        }
        put_syscall(&o, r);
        return;
    }
    put_syscall(&o, r);
    put_waker(&o, r, name, ctx);
    put_run_queue(&o, r);
}
