/* The kinds whose every hit fires: an event of a watched thread, without a length. */
#ifndef ST_TRIGGERS_BPF_HIT_BPF_H
#define ST_TRIGGERS_BPF_HIT_BPF_H

#include "triggers/bpf/span.bpf.h"

/* A kind's part of the record. */
static void hit_describe(void *ctx, struct thread *t, struct st_stall_record *r);

static __noinline void tell_hit(void *ctx, struct thread *t, st_u32 slot, st_u64 ktime)
{
    struct pending *p = new_pending(slot);
    long bytes;

    if (!p) {
        __sync_fetch_and_add(&lost_records, 1);
        return;
    }
    t->syscall = -1;
    t->cpu = bpf_get_smp_processor_id();
    base_record(&p->r, t, ST_STALL_FIRED);
    p->r.seq = __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = ktime;
    p->r.end_ktime = ktime;
    name_thread(&p->r, bpf_get_current_task_btf());
    copy_user_stack(ctx, p, bpf_get_current_task_btf());
    bytes = bpf_get_stack(ctx, p->r.kstack, sizeof(p->r.kstack), 0);
    p->r.kstack_n = bytes > 0 ? bytes / sizeof(p->r.kstack[0]) : 0;
    hit_describe(ctx, t, &p->r);
    emit(ctx, p);
    bpf_map_delete_elem(&pending, &slot);
}

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct st_mark_record);
} marks SEC(".maps");

static __noinline void tell_mark(void *ctx, struct thread *t, st_u32 slot)
{
    struct pending *p = new_pending(slot);
    st_u32 zero = 0;
    struct st_mark_record *m = bpf_map_lookup_elem(&marks, &zero);

    if (!p || !m) {
        __sync_fetch_and_add(&lost_records, 1);
        return;
    }
    hit_describe(ctx, t, &p->r);
    m->magic = ST_MARK_MAGIC;
    m->version = ST_STALL_VERSION;
    m->text_n = p->r.extra_n < ST_MARK_TEXT ? p->r.extra_n : ST_MARK_TEXT;
    bpf_probe_read_kernel(m->name, sizeof(m->name),
                          (const void *)span.mark); /* not what it is when compiled */
    __builtin_memcpy(m->text, p->r.extra, sizeof(m->text));
    if (bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, m, sizeof(*m)))
        __sync_fetch_and_add(&lost_records, 1);
    bpf_map_delete_elem(&pending, &slot);
}

/* The current thread was hit. What is measured is the time since its hit before. While nothing may fire, hits
 * make no records: there may be millions. */
static __always_inline void hit(void *ctx, struct thread *t, st_u32 slot)
{
    st_u64 ktime = bpf_ktime_get_ns();

    if (!is_member(t, bpf_get_current_task_btf()))
        return;
    if (t->mark)
        measure(ktime - t->mark, t);
    t->mark = ktime;
    if (span.mark[0])
        tell_mark(ctx, t, slot);
    else if (!span.measure_only && fires(ktime))
        tell_hit(ctx, t, slot, ktime);
}

/* There are no spans. */
static void span_found(struct thread *t, struct task_struct *task)
{
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
}

#endif
