/* The histogram of what was measured. */
#ifndef ST_TRIGGERS_MEASURE_BPF_H
#define ST_TRIGGERS_MEASURE_BPF_H

#include "triggers/config.h"
#include "triggers/kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct hist);
} hist SEC(".maps");

static __always_inline st_u32 log2_of(st_u64 v)
{
    st_u32 n = 0;

#pragma unroll
    for (st_u32 step = 32; step; step /= 2)
        if (v >> step) {
            v >>= step;
            n += step;
        }
    return n;
}

static __always_inline st_u32 bucket_of(st_u64 took)
{
    st_u32 power = log2_of(took);
    st_u32 step = (power >= 3 ? took >> (power - 3) : took << (3 - power)) & (HIST_STEPS - 1);

    return (power * HIST_STEPS + step) & (HIST_BUCKETS - 1);
}

const volatile st_u32 by_thread; /* threads are told apart too */

/* Zeros (an array of bytes: the skeleton does not know the struct). */
const char no_hist[sizeof(struct thread_hist)] __attribute__((aligned(8))) = {0};

st_u64 lost_hists; /* values of threads that were too many */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, HIST_THREADS);
    __type(key, st_u32);
    __type(value, struct thread_hist);
} thread_hists SEC(".maps");

static __noinline int measure_thread(st_u64 took, struct task_struct *task)
{
    st_u32 tid = BPF_CORE_READ(task, pid);
    struct thread_hist *h = bpf_map_lookup_elem(&thread_hists, &tid);

    if (!h) {
        bpf_map_update_elem(&thread_hists, &tid, (void *)no_hist, BPF_NOEXIST);
        h = bpf_map_lookup_elem(&thread_hists, &tid);
        if (!h) {
            __sync_fetch_and_add(&lost_hists, 1);
            return 0;
        }
        bpf_core_read(h->comm, sizeof(h->comm), &task->comm);
    }
    h->bucket[bucket_of(took)]++;
    h->sum += took;
    if (took > h->worst)
        h->worst = took;
    return 0;
}

/* `task`: the kernel's address of the thread it is of; 0: of none. */
static __always_inline void measure(st_u64 took, st_u64 task)
{
    st_u32 zero = 0;
    struct hist *h = bpf_map_lookup_elem(&hist, &zero);

    if (!h)
        return;
    h->bucket[bucket_of(took)]++;
    h->sum += took;
    if (took > h->worst)
        h->worst = took;
    if (by_thread && task)
        measure_thread(took, (struct task_struct *)task);
}

#endif
