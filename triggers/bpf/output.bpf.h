/* How a record leaves the kernel. bpf_perf_event_output() needs a context, which a timer's callback has not;
 * so a record is put ready and bpf_printk() is called: the tracepoint in it runs the program below, at once,
 * on the same CPU, with one. A record that fires is announced by a line that begins with "stalltrap PID: ",
 * the recorder's: a perf event on bpf_trace:bpf_trace_printk can stop a hardware trace by it in that moment.
 */
#ifndef ST_TRIGGERS_BPF_OUTPUT_BPF_H
#define ST_TRIGGERS_BPF_OUTPUT_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/context.bpf.h"

/* A record that waits for its last part: the user stack, taken when the thread itself is current again. */
struct pending {
    struct st_stall_record r;

    st_u64 sp, bp; /* user registers of the wait; its ip is r.ustack[0] */

    st_u64 run_delay; /* task_struct.sched_info.run_delay before the thread got its CPU */

    st_u64 woken, gap; /* when it was woken last, and the time before the wake-up that is kept: spans */

    st_u64 waker_python_n; /* words of waker_python in use */

    st_u64 waker_python[2 * PYTHON_WAKER_FRAMES]; /* pairs as in r.ustack: offcpu */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, st_u32); /* slot */
    __type(value, struct pending);
} pending SEC(".maps");

/* For records that are complete at once, and when `pending` is full. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct pending);
} scratch SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, sizeof(int));
    __uint(value_size, sizeof(int));
} events SEC(".maps");

enum {
    OUTPUT_NONE,
    OUTPUT_SCRATCH,
    OUTPUT_PENDING,
};

st_u64 lost_records; /* not written */
st_u64 last_seq;
st_u64 hold_until_ktime; /* nothing fires before */

static __always_inline bool fires(st_u64 ktime)
{
    return ktime >= hold_until_ktime;
}

SEC("tp_btf/bpf_trace_printk")
int BPF_PROG(st_output)
{
    struct cpu_context *cpu = this_cpu();
    struct pending *p;
    st_u32 zero = 0;

    if (!cpu || cpu->output == OUTPUT_NONE)
        return 0;
    if (cpu->output == OUTPUT_SCRATCH)
        p = bpf_map_lookup_elem(&scratch, &zero);
    else
        p = bpf_map_lookup_elem(&pending, &cpu->output_slot);
    cpu->output = OUTPUT_NONE;
    if (!p)
        return 0;
    p->r.now_ktime = bpf_ktime_get_ns();
    if (bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &p->r, sizeof(p->r)))
        __sync_fetch_and_add(&lost_records, 1);
    return 0;
}

/* Zeros (an array of bytes: the skeleton does not know struct pending). */
const char no_record[sizeof(struct pending)] __attribute__((aligned(8))) = {0};

static __always_inline struct pending *cleared_scratch(void)
{
    st_u32 zero = 0;
    struct pending *p = bpf_map_lookup_elem(&scratch, &zero);

    if (p)
        bpf_probe_read_kernel(p, sizeof(*p), no_record);
    return p;
}

static __always_inline struct pending *new_pending(st_u32 slot)
{
    struct pending *p = bpf_map_lookup_elem(&pending, &slot);

    if (p)
        return p;
    bpf_map_update_elem(&pending, &slot, (void *)no_record, BPF_ANY);
    return bpf_map_lookup_elem(&pending, &slot);
}

/* Stops a trace that waits for it. */
static __always_inline void announce(const struct st_stall_record *r)
{
    bpf_printk("stalltrap %u: --on %u fired, stall %llu", follow.self, r->trigger, r->seq);
}

/* False: the kernel did not run the program above. There are tasks in whose context some kernels run no
 * tracing program; a timer that goes off while one of them is current has to try again. */
static __always_inline bool try_record(st_u32 from, st_u32 slot, struct st_stall_record *r)
{
    struct cpu_context *cpu = this_cpu();

    if (!cpu)
        return false;
    cpu->output_slot = slot;
    cpu->output = from;
    if (r->flags & ST_STALL_FIRED)
        announce(r);
    else
        bpf_printk("(stalltrap: --on %u, stall %llu)", r->trigger, r->seq);
    if (cpu->output == OUTPUT_NONE)
        return true;
    cpu->output = OUTPUT_NONE;
    return false;
}

static __always_inline void count_lost_record(void)
{
    __sync_fetch_and_add(&lost_records, 1);
}

static __always_inline void write_record(st_u32 from, st_u32 slot, struct st_stall_record *r)
{
    if (!try_record(from, slot, r))
        count_lost_record();
}

/* The caller's part of the user stack by frame pointers, from the registers of the wait. The thread is
 * current. */
static __always_inline void walk_user_stack(struct pending *p)
{
    st_u64 fp = p->bp, frame[2];
    int n = 1;

    for (int i = 1; i < ST_STALL_USTACK; i++) {
        if (fp < p->sp || fp & 7 || bpf_probe_read_user(frame, sizeof(frame), (void *)fp) || !frame[1])
            break;
        p->r.ustack[i] = frame[1];
        n = i + 1;
        if (frame[0] <= fp)
            break;
        fp = frame[0];
    }
    p->r.ustack_n = n;
}

#endif
