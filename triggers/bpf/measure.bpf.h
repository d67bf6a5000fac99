/* Histograms of what was measured. Behind follow.bpf.h; struct thread has the fields `task` and `hist`. */
#ifndef ST_TRIGGERS_BPF_MEASURE_BPF_H
#define ST_TRIGGERS_BPF_MEASURE_BPF_H

#include "triggers/bpf/bucket.h"
#include "triggers/bpf/follow.bpf.h"

/* Of all that no thread's histogram has. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct hist);
} hist SEC(".maps");

/* The verifier of Linux 6.1 knows nothing of a bucket's parts put together: the bound stands where it is
 * used. */
#define bounded(bucket)                                                                                      \
    ({                                                                                                       \
        st_u32 _bucket = (bucket);                                                                           \
                                                                                                             \
        asm volatile("" : "+r"(_bucket));                                                                    \
        _bucket &(HIST_BUCKETS - 1);                                                                         \
    })

const volatile st_u32 by_thread; /* threads are told apart too */

st_u32 first_hists_used;
st_u64 lost_hists; /* values of threads that were too many: in `hist` */

/* Of the threads that are measured first, for as long as they live: found by number. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* HIST_FIRST with by_thread: set by user space */
    __type(key, st_u32);
    __type(value, struct thread_hist);
} first_hists SEC(".maps");

/* Of all others, by thread id. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, HIST_THREADS);
    __type(key, st_u32);
    __type(value, struct thread_hist);
} thread_hists SEC(".maps");

/* Values of thread.hist; the others are the number in first_hists, plus 1. */
enum {
    HIST_NOT_YET,
    HIST_BY_ID = HIST_FIRST + 1,
};

/* Zeros (an array of bytes: the skeleton does not know the struct). */
const char no_hist[sizeof(struct thread_hist)] __attribute__((aligned(8))) = {0};

static __always_inline void name_hist(struct thread_hist *h, struct task_struct *task)
{
    h->tid = BPF_CORE_READ(task, pid);
    bpf_core_read(h->comm, sizeof(h->comm), &task->comm);
}

static __always_inline struct thread_hist *first_hist(struct thread *t)
{
    st_u32 row = t->hist - 1;

    return bpf_map_lookup_elem(&first_hists, &row);
}

static __noinline struct thread_hist *hist_by_id(struct task_struct *task)
{
    st_u32 tid = BPF_CORE_READ(task, pid);
    struct thread_hist *h = bpf_map_lookup_elem(&thread_hists, &tid);

    if (h)
        return h;
    bpf_map_update_elem(&thread_hists, &tid, (void *)no_hist, BPF_NOEXIST);
    h = bpf_map_lookup_elem(&thread_hists, &tid);
    if (h)
        name_hist(h, task);
    return h;
}

/* The thread's histogram where it has no number yet, or none. */
static __noinline struct thread_hist *other_hist(struct thread *t)
{
    struct task_struct *task = (struct task_struct *)t->task;
    struct thread_hist *h;

    if (t->hist == HIST_NOT_YET) {
        t->hist = HIST_BY_ID;
        if (first_hists_used < HIST_FIRST) {
            t->hist = __sync_fetch_and_add(&first_hists_used, 1) + 1;
            if (t->hist > HIST_FIRST)
                t->hist = HIST_BY_ID;
        }
        h = first_hist(t);
        if (h) {
            name_hist(h, task);
            return h;
        }
    }
    h = hist_by_id(task);
    if (!h)
        __sync_fetch_and_add(&lost_hists, 1);
    return h;
}

static __always_inline void add_value(struct hist *h, st_u64 took)
{
    h->bucket[bounded(bucket_of(took))]++;
    h->sum += took;
    if (took > h->worst)
        h->worst = took;
}

/* `t`: the thread it is of, or NULL; its `task` is 0 where it is none. One histogram gets the value: this
 * runs at every system call, and what it touches has been put out of the cache by then. */
static __always_inline void measure(st_u64 took, struct thread *t)
{
    struct thread_hist *own = NULL;
    struct hist *h;
    st_u32 zero = 0;

    if (by_thread && t && t->task) {
        own = first_hist(t);
        if (!own)
            own = other_hist(t);
    }
    if (own) {
        add_value(&own->hist, took);
        return;
    }
    h = bpf_map_lookup_elem(&hist, &zero);
    if (h)
        add_value(h, took);
}

#endif
