/* Stall records -> rows of `stall`, `stall_attr` and `stack`. */
#include "base/bisect.h"
#include "decoder/model/db/db_impl.h"

#include "base/stall_complete.h"
#include "base/syscalls.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row: a record, or an ongoing one and its completion. */
struct stall {
    struct st_stall_record record;

    int64_t offset; /* perf clock - CLOCK_MONOTONIC */

    uint64_t
        held_at; /* perf clock: when the trigger's condition held: at its end, or when it was told to go on */

    uint64_t noticed_ns; /* after its start, while it went on; 0: it was told when it was over */

    bool fired;
};

struct stall_list {
    ST_VEC(struct stall) stalls;
};

struct stall_writer {
    struct dec_model *m;

    struct tdb_writer *w;

    struct st_error *err;

    int64_t stack_id;

    const char *const *triggers;

    size_t ntriggers;

    int64_t fired; /* the stall that fired the snapshot; 0: none did */
};

static uint64_t to_perf(const struct stall *s, uint64_t ktime)
{
    return (uint64_t)((int64_t)ktime + s->offset);
}

static struct stall *find_ongoing(struct stall_list *list, const struct st_stall_record *completion)
{
    for (size_t i = list->stalls.n; i-- > 0;)
        if (st_stall_completes(&list->stalls.at[i].record, completion))
            return &list->stalls.at[i];
    return NULL;
}

static int gather(const struct dec_model *m, struct stall_list *list)
{
    for (size_t i = 0; i < m->sb->stalls.n; i++) {
        const struct dec_stall_sample *sample = &m->sb->stalls.at[i];
        int64_t offset = (int64_t)(sample->time - sample->record.now_ktime);
        struct stall s = {.record = sample->record,
                          .offset = offset,
                          .held_at = sample->record.end_ktime
                                         ? (uint64_t)((int64_t)sample->record.end_ktime + offset)
                                         : sample->time,
                          .noticed_ns = sample->record.end_ktime ? 0 : sample->record.measured_ns,
                          .fired = sample->record.flags & ST_STALL_FIRED};
        struct stall *ongoing = find_ongoing(list, &s.record);

        if (ongoing) {
            st_stall_complete(&ongoing->record, &s.record);
            ongoing->offset = offset;
        } else if (st_vec_push(&list->stalls, s))
            return -1;
    }
    return 0;
}

uint64_t model_first_stall(const struct dec_model *m)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < m->sb->stalls.n; i++) {
        const struct dec_stall_sample *sample = &m->sb->stalls.at[i];
        uint64_t start = sample->time - sample->record.now_ktime + sample->record.start_ktime;

        if (start < first)
            first = start;
    }
    return first;
}

static int add_frame(struct stall_writer *sw, int depth, uint64_t address, uint32_t symbol)
{
    struct tdb_value row[] = {TDB_N(sw->stack_id), TDB_N(depth), TDB_N(address),
                              model_symbol_id(sw->m, symbol)};

    return tdb_add_row(sw->w, "stack", row, 4, sw->err);
}

/* Frames of the kernel get the names that were recorded with them, or those of the kernel's image. Sets *id
 * to the row's stack, 0 where there are no frames. */
static int kernel_stack(struct stall_writer *sw, const st_u64 *frames, unsigned n, int64_t *id)
{
    int rc = 0;

    *id = n ? ++sw->stack_id : 0;
    for (unsigned i = 0; i < n && !rc; i++) {
        const struct dec_kernel_name *name = dec_sideband_kernel_name(sw->m->sb, frames[i]);
        const struct dec_function *f = NULL;
        uint32_t symbol;

        if (!name) {
            f = dec_symbols_function(sw->m->symbols, sw->m->sb->kernel, sw->m->sb->last, frames[i]);
            if (!f)
                return st_nomem(sw->err, "a stack's symbols");
        }
        symbol = name ? dec_symbols_kernel(sw->m->symbols, name->name, name->start) : f->symbol;
        if (symbol == UINT32_MAX)
            return st_nomem(sw->err, "a stack's symbols");
        rc = add_frame(sw, (int)i, frames[i], symbol);
    }
    return rc;
}

/* 0 or -1 (no memory). */
static int note_frame(struct stall_writer *sw, int depth, uint64_t address, const struct dec_function *f)
{
    const struct dec_symbol_row *row = dec_symbols_at(sw->m->symbols, f->symbol);
    struct model_frame frame = {sw->stack_id, depth, row->image, row->address + (address - f->start)};

    return row->image ? st_vec_push(&sw->m->frames, frame) : 0;
}

/* A return address stands behind its call, which may be the last instruction of the function; so it is with
 * system calls. */
static int user_frames(struct stall_writer *sw, const struct dec_thread *thread, uint64_t time,
                       const st_u64 *frames, unsigned n, bool in_call, int64_t *id)
{
    int rc = 0;

    *id = n ? ++sw->stack_id : 0;
    for (unsigned i = 0; i < n && !rc; i++) {
        uint64_t address = frames[i];
        uint64_t code = address && (i || in_call) ? address - 1 : address;
        const struct dec_function *f =
            dec_symbols_function(sw->m->symbols, thread->process->space, time, code);

        if (!f || note_frame(sw, (int)i, code, f))
            return st_nomem(sw->err, "a stack's symbols");
        rc = add_frame(sw, (int)i, address, f->symbol);
    }
    return rc;
}

static int user_stack(struct stall_writer *sw, const struct dec_thread *thread, uint64_t time,
                      const struct stall *s, int64_t *id)
{
    return user_frames(sw, thread, time, s->record.ustack, s->record.ustack_n, s->record.syscall >= 0, id);
}

/* Where the program was that woke the thread, if it is one of those whose code is known: an attribute. */
static int waker_user_stack(struct stall_writer *sw, const struct st_stall_record *r, uint64_t time,
                            int64_t *id)
{
    const struct dec_thread *thread = NULL;
    unsigned kernel = st_stall_waker_kernel(r);

    *id = 0;
    if (kernel + 1 < r->wstack_n && r->waker_ctx == ST_WAKER_TASK)
        thread = dec_sideband_thread(sw->m->sb, (int32_t)r->waker_tid, -1, time);
    if (!thread)
        return 0;
    return user_frames(sw, thread, time, r->wstack + kernel + 1, r->wstack_n - kernel - 1, true, id);
}

static const char *timer_name(const struct stall_writer *sw, const struct st_stall_record *r, char *buf,
                              size_t size)
{
    const struct dec_kernel_name *name =
        r->timer_func ? dec_sideband_kernel_name(sw->m->sb, r->timer_func) : NULL;

    if (!r->timer_func)
        snprintf(buf, size, "%s", "");
    else if (name)
        snprintf(buf, size, "%.*s", (int)strcspn(name->name, " "), name->name);
    else
        snprintf(buf, size, "0x%" PRIx64, (uint64_t)r->timer_func);
    return buf;
}

static const char *trigger_text(const struct stall_writer *sw, const struct st_stall_record *r, char *buf,
                                size_t size)
{
    char duration[24];

    if (r->trigger < sw->ntriggers)
        return sw->triggers[r->trigger];
    if (!r->threshold_ns) {
        snprintf(buf, size, "%s", model_stall_kind(r->kind));
        return buf;
    }
    st_format_duration((int64_t)r->threshold_ns, duration, sizeof(duration));
    snprintf(buf, size, "%s>%s", model_stall_kind(r->kind), duration);
    return buf;
}

static struct tdb_value text_or_null(const char *text)
{
    return *text ? TDB_T(text) : TDB_0;
}

static struct tdb_value id_or_null(int64_t id)
{
    return id ? TDB_N(id) : TDB_0;
}

/* Attributes of a row: a key once, the first one counts. */
struct attrs {
    struct stall_writer *sw;

    int64_t stall_id;

    const char *keys[96];

    size_t n;
};

static int add_attr(struct attrs *a, const char *key, struct tdb_value value)
{
    struct tdb_value row[] = {TDB_N(a->stall_id), TDB_T(key), value};

    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->keys[i], key))
            return 0;
    if (a->n == sizeof(a->keys) / sizeof(a->keys[0]))
        return 0;
    a->keys[a->n++] = key;
    return tdb_add_row(a->sw->w, "stall_attr", row, 3, a->sw->err);
}

static struct tdb_value number_or_text(const char *text)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 0);
    return *text && !*end && !errno ? TDB_N(number) : TDB_T(text);
}

/* "key=value", NUL-terminated, one after the other. The record is changed: each '=' becomes the end of its
 * key. */
static int extra_attrs(struct attrs *a, struct st_stall_record *r)
{
    int rc = 0;

    for (size_t at = 0; at < r->extra_n && !rc; at += strlen(r->extra + at) + 1) {
        char *key = r->extra + at;
        char *value = strchr(key, '=');

        if (!value || value == key)
            continue;
        *value++ = '\0';
        rc = add_attr(a, key, number_or_text(value));
        at += strlen(key) + 1;
    }
    return rc;
}

/* How many samples by time, not at switches, the thread has from start to end: what it did while it ran is
 * known as well as that. */
static int64_t samples_within(const struct dec_sideband *sb, int32_t tid, uint64_t start, uint64_t end)
{
    size_t first = st_bisect(i, sb->samples.n,
                             sb->samples.at[i].tid < tid ||
                                 (sb->samples.at[i].tid == tid && sb->samples.at[i].time < start));
    int64_t n = 0;

    for (; first < sb->samples.n && sb->samples.at[first].tid == tid && sb->samples.at[first].time <= end;
         first++)
        n += !sb->samples.at[first].at_switch;
    return n;
}

/* Where the stall that fired was in the language of its program, as the recorder read it, and where its waker
 * was: runtime, frame.N and waker_frame.N keep their names. */
static int write_frames(struct attrs *a)
{
    static const char *const keys[] = {
        "runtime",       "frame.0",       "frame.1",       "frame.2",       "frame.3",       "frame.4",
        "frame.5",       "frame.6",       "frame.7",       "frame.8",       "frame.9",       "frame.10",
        "frame.11",      "frame.12",      "frame.13",      "frame.14",      "frame.15",      "frame.16",
        "frame.17",      "frame.18",      "frame.19",      "frame.20",      "frame.21",      "frame.22",
        "frame.23",      "waker_frame.0", "waker_frame.1", "waker_frame.2", "waker_frame.3", "waker_frame.4",
        "waker_frame.5", "waker_frame.6", "waker_frame.7"};
    int rc = 0;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !rc; i++) {
        const char *text = dec_sideband_meta(a->sw->m->sb, keys[i]);

        if (text)
            rc = add_attr(a, keys[i], TDB_T(text));
    }
    return rc;
}

static int write_attrs(struct stall_writer *sw, int64_t id, struct stall *s, uint64_t start, uint64_t end,
                       int64_t waker_user_stack)
{
    static const char *const args[] = {"arg0", "arg1", "arg2", "arg3", "arg4", "arg5"};
    struct st_stall_record *r = &s->record;
    struct attrs a = {.sw = sw, .stall_id = id};
    char next[64], call[64];
    bool inside = model_in_syscall(r) >= 0;
    int rc = extra_attrs(&a, r);

    for (int i = 0; i < 6 && inside && !rc; i++)
        rc = add_attr(&a, args[i], TDB_N(r->syscall_args[i]));
    if (!rc && !inside && r->syscall >= 0)
        rc = add_attr(&a, "longest_syscall",
                      TDB_T(st_syscall_name(r->syscall, r->flags & ST_STALL_COMPAT, call, sizeof(call))));
    if (!rc)
        rc = add_attr(&a, "cpu", TDB_N(r->cpu));
    if (!rc && r->next_tid) {
        model_thread_text(r->next_tid, r->next_comm, next, sizeof(next));
        rc = add_attr(&a, "next", TDB_T(next));
    }
    if (!rc && (r->flags & ST_STALL_FOUND))
        rc = add_attr(&a, "began_before", TDB_N(1));
    if (!rc && s->noticed_ns)
        rc = add_attr(&a, "noticed_after_ns", TDB_N(s->noticed_ns));
    if (!rc && (r->flags & ST_STALL_IDLE))
        rc = add_attr(&a, "idle", TDB_N(1));
    if (!rc && (r->flags & ST_STALL_STACK_LATE))
        rc = add_attr(&a, "user_stack_late", TDB_N(1));
    if (!rc && (r->flags & ST_STALL_UNTRACED))
        rc = add_attr(&a, "untraced", TDB_N(1));
    if (!rc && sw->m->sb->sampled && !sw->m->sb->has_pt && end > start)
        rc = add_attr(&a, "samples", TDB_N(samples_within(sw->m->sb, (int32_t)r->tid, start, end)));
    if (!rc && waker_user_stack)
        rc = add_attr(&a, "waker_user_stack_id", TDB_N(waker_user_stack));
    if (!rc && id == sw->fired && (int64_t)r->seq == dec_sideband_meta_number(sw->m->sb, "trigger_seq", -1))
        rc = write_frames(&a);
    return rc;
}

static int64_t waker_thread(const struct stall_writer *sw, const struct st_stall_record *r, uint64_t time)
{
    const struct dec_thread *t;

    if (r->waker_ctx != ST_WAKER_TASK)
        return 0;
    t = dec_sideband_thread(sw->m->sb, (int32_t)r->waker_tid, -1, time);
    return t ? model_thread_id(t) : 0;
}

static bool is_named(const struct stall_writer *sw, uint64_t address, const char *name)
{
    const struct dec_kernel_name *found = address ? dec_sideband_kernel_name(sw->m->sb, address) : NULL;

    return found && !strcmp(found->name, name);
}

/* The timer of the wait itself wakes out of hrtimer_wakeup() (kernel/time/hrtimer.c) or process_timeout()
 * (kernel/time/sleep_timeout.c), which wake nobody else; the latter leaves no frame of its own. */
static bool by_own_timer(const struct stall_writer *sw, const struct st_stall_record *r)
{
    bool expired = is_named(sw, r->timer_func, "process_timeout");

    for (size_t i = 0; i < st_stall_waker_kernel(r); i++)
        if (is_named(sw, r->wstack[i], "hrtimer_wakeup") ||
            (expired && i < 3 && is_named(sw, r->wstack[i], "call_timer_fn")))
            return true;
    return false;
}

/* A record that was made when another one ran already has the thread that had the CPU by its number only. */
static void name_next(const struct stall_writer *sw, struct st_stall_record *r, uint64_t time)
{
    const struct dec_thread *t = r->next_tid && !r->next_comm[0]
                                     ? dec_sideband_thread(sw->m->sb, (int32_t)r->next_tid, -1, time)
                                     : NULL;

    if (t && dec_thread_name(t, time)[0] != ':') /* no name was recorded */
        snprintf(r->next_comm, sizeof(r->next_comm), "%s", dec_thread_name(t, time));
}

static int write_stall(struct stall_writer *sw, int64_t id, struct stall *s)
{
    struct st_stall_record *r = &s->record;
    uint64_t start = to_perf(s, r->start_ktime);
    uint64_t end = r->end_ktime ? to_perf(s, r->end_ktime) : 0;
    uint64_t now = end ? end : to_perf(s, r->now_ktime);
    uint64_t until = sw->m->sb->last > start ? sw->m->sb->last - start : 0;
    uint64_t duration = end ? end - start : until > r->measured_ns ? until : r->measured_ns;
    const struct dec_thread *thread = dec_sideband_thread(sw->m->sb, (int32_t)r->tid, (int32_t)r->cpu, now);
    char trigger[128], state[32], call[64], waker[64], timer[128], reason[512];
    int64_t kstack = 0, ustack = 0, wstack = 0, wustack = 0;
    bool own_timer = by_own_timer(sw, r);
    int rc = kernel_stack(sw, r->kstack, r->kstack_n, &kstack);

    if (!rc && thread)
        rc = user_stack(sw, thread, now, s, &ustack);
    if (!rc)
        rc = kernel_stack(sw, r->wstack, st_stall_waker_kernel(r), &wstack);
    if (!rc)
        rc = waker_user_stack(sw, r, r->wake_ktime ? to_perf(s, r->wake_ktime) : now, &wustack);
    if (rc)
        return rc;
    name_next(sw, r, now);
    model_waker(r, own_timer, waker, sizeof(waker));
    timer_name(sw, r, timer, sizeof(timer));
    if (own_timer)
        *timer = '\0'; /* the waker says it */
    model_reason(r, duration, !end, waker, timer, reason, sizeof(reason));
    struct tdb_value row[] = {
        TDB_N(id),
        TDB_T(trigger_text(sw, r, trigger, sizeof(trigger))),
        thread ? TDB_N(model_thread_id(thread)) : TDB_0,
        TDB_T(model_stall_kind(r->kind)),
        TDB_N(model_time(sw->m, start)),
        end ? TDB_N(model_time(sw->m, end)) : TDB_0,
        TDB_N(duration),
        TDB_N(r->threshold_ns),
        TDB_T(model_measured_state(r, state, sizeof(state))),
        model_in_syscall(r) >= 0
            ? TDB_T(st_syscall_name(r->syscall, r->flags & ST_STALL_COMPAT, call, sizeof(call)))
            : TDB_0,
        text_or_null(waker),
        TDB_T(reason),
        TDB_N(s->fired),
        id_or_null(waker_thread(sw, r, now)),
        r->wake_ktime ? TDB_N(model_time(sw->m, to_perf(s, r->wake_ktime))) : TDB_0,
        text_or_null(timer),
        id_or_null(kstack),
        id_or_null(ustack),
        id_or_null(wstack)};
    rc = tdb_add_row(sw->w, "stall", row, sizeof(row) / sizeof(row[0]), sw->err);
    return rc ? rc : write_attrs(sw, id, s, start, start + duration, wustack);
}

/* The stall that fired this snapshot: the one the recorder names, else the last that fires. */
static int64_t find_fired(const struct dec_model *m, const struct stall_list *list)
{
    int64_t index = dec_sideband_meta_number(m->sb, "trigger_index", -1);
    int64_t seq = dec_sideband_meta_number(m->sb, "trigger_seq", -1);
    int64_t fired = 0;

    for (size_t i = 0; i < list->stalls.n; i++) {
        const struct stall *s = &list->stalls.at[i];

        if (index >= 0 && (int64_t)s->record.trigger == index && (int64_t)s->record.seq == seq)
            return (int64_t)i + 1;
        if (s->fired)
            fired = (int64_t)i + 1;
    }
    return fired;
}

int model_write_stalls(struct dec_model *m, struct tdb_writer *w, const char *const *triggers,
                       size_t ntriggers, struct st_error *err)
{
    struct stall_writer sw = {.m = m, .w = w, .err = err, .triggers = triggers, .ntriggers = ntriggers};
    struct stall_list list = {0};
    int rc = gather(m, &list) ? st_nomem(err, "the stalls") : 0;

    sw.fired = rc ? 0 : find_fired(m, &list);
    for (size_t i = 0; i < list.stalls.n && !rc; i++)
        rc = write_stall(&sw, (int64_t)i + 1, &list.stalls.at[i]);
    if (!rc && sw.fired)
        rc = tdb_set_meta_number(w, "trigger_stall_id", sw.fired, err);
    if (!rc && sw.fired)
        rc = model_write_stops(m, w, list.stalls.at[sw.fired - 1].held_at, err);
    st_vec_free(&list.stalls);
    return rc;
}
