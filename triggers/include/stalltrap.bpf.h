/* For BPF programs of your own that fire a trigger: `--on bpf:FILE.o`. Include it behind the kernel's types
 * (vmlinux.h, or <linux/bpf.h>) and <bpf/bpf_helpers.h>:
 *
 *     #include "stalltrap.bpf.h"
 *
 *     SEC("tracepoint/block/block_rq_complete")
 *     int slow_disk(void *ctx)
 *     {
 *         ...
 *         if (took > limit && stalltrap_is_target(pid))
 *             stalltrap_fire(ctx, start, "device=sda");
 *         return 1; // 0, in a program on a tracepoint, would take the event from everyone's perf
 *     }
 *
 * Compile it with `clang -g -O2 -target bpf -D__TARGET_ARCH_x86 -I FOLDER -isystem
 * /usr/include/x86_64-linux-gnu -c FILE.bpf.c -o FILE.o`; FOLDER holds this file and base/stall_record.h.
 * stalltrap loads the object and attaches every program of it as its section's name says (libbpf). */
#ifndef STALLTRAP_BPF_H
#define STALLTRAP_BPF_H

#include "base/stall_record.h"

/* Written by stalltrap. */
struct stalltrap_control {
    st_u64 hold_until; /* nothing fires before (bpf_ktime_get_ns()) */

    st_u32 trigger; /* number of the --on */

    st_u32 everyone; /* -a: every process is a target */
};

/* Read by stalltrap. */
struct stalltrap_counts {
    st_u64 fired[64]; /* by power of two of the duration in ns */

    st_u64 worst;

    st_u64 lost; /* records that could not be written */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct stalltrap_control);
} stalltrap_control SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct stalltrap_counts);
} stalltrap_counts SEC(".maps");

/* The target's process ids (with --cgroup and --comm those that were there when it was armed). */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, st_u32);
    __type(value, char);
} stalltrap_pids SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, sizeof(int));
    __uint(value_size, sizeof(int));
} stalltrap_events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct st_stall_record);
} stalltrap_record SEC(".maps");

/* Whether the process is one of the target's. What it forks after it was armed is not known here. */
static __attribute__((always_inline)) inline int stalltrap_is_target(st_u32 pid)
{
    st_u32 zero = 0;
    struct stalltrap_control *c = bpf_map_lookup_elem(&stalltrap_control, &zero);

    return (c && c->everyone) || bpf_map_lookup_elem(&stalltrap_pids, &pid);
}

static __attribute__((always_inline)) inline void stalltrap_count(struct stalltrap_counts *counts,
                                                                  st_u64 took)
{
    st_u32 power = 0;

#pragma unroll
    for (st_u32 step = 32; step; step /= 2)
        if (took >> power >> step)
            power += step;
    counts->fired[power & 63]++;
    if (took > counts->worst)
        counts->worst = took;
}

/* Fires: the current thread was stalled from `start` (bpf_ktime_get_ns(); 0: it was not, something happened)
 * until now. `attribute` is "key=value" for the table stall_attr, or NULL. Not from programs that other
 * programs of the object may interrupt in the same moment on the same CPU. */
static __attribute__((always_inline)) inline void stalltrap_fire(void *ctx, st_u64 start,
                                                                 const char *attribute)
{
    st_u32 zero = 0;
    struct stalltrap_control *c = bpf_map_lookup_elem(&stalltrap_control, &zero);
    struct stalltrap_counts *counts = bpf_map_lookup_elem(&stalltrap_counts, &zero);
    struct st_stall_record *r = bpf_map_lookup_elem(&stalltrap_record, &zero);
    st_u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
    long n;

    if (!c || !counts || !r)
        return;
    r->magic = ST_STALL_MAGIC;
    r->version = ST_STALL_VERSION;
    r->kind = ST_STALL_BPF;
    r->trigger = c->trigger;
    r->flags = now >= c->hold_until ? ST_STALL_FIRED : 0;
    /* Each CPU counts for itself: one count for all needs atomic operations of Linux 5.12. */
    r->seq = ((r->seq >> 16) + 1) << 16 | (bpf_get_smp_processor_id() & 0xffff);
    r->start_ktime = start ? start : now;
    r->end_ktime = r->now_ktime = now;
    r->measured_ns = now - r->start_ktime;
    r->pid = id >> 32;
    r->tid = (st_u32)id;
    r->syscall = -1;
    r->cpu = bpf_get_smp_processor_id();
    bpf_get_current_comm(r->comm, sizeof(r->comm));
    n = bpf_get_stack(ctx, r->ustack, sizeof(r->ustack), BPF_F_USER_STACK);
    r->ustack_n = n > 0 ? n / sizeof(r->ustack[0]) : 0;
    n = bpf_get_stack(ctx, r->kstack, sizeof(r->kstack), 0);
    r->kstack_n = n > 0 ? n / sizeof(r->kstack[0]) : 0;
    n = attribute ? bpf_probe_read_kernel_str(r->extra, sizeof(r->extra), attribute) : 0;
    r->extra_n = n > 0 ? n : 0;
    stalltrap_count(counts, r->measured_ns);
    if (bpf_perf_event_output(ctx, &stalltrap_events, BPF_F_CURRENT_CPU, r, sizeof(*r)))
        counts->lost++;
}

#endif
