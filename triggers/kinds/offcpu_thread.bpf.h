/* offcpu: what is kept of each watched thread, and of all of them. */
#ifndef ST_TRIGGERS_KINDS_OFFCPU_THREAD_BPF_H
#define ST_TRIGGERS_KINDS_OFFCPU_THREAD_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"

#define CLOCK_MONOTONIC 1
#define EBUSY           16
#define ONGOING         1ull /* bit of thread.off: told as ongoing */
#define RUNNING         2ull /* thread.off: not off, or not in a way that counts; 0: not seen yet */
#define HOLD_LOOK_NS    50000000ull
#define TRY_AGAIN_NS    1000000ull /* a record that did not get out */
#define MAX_TRIES       100

struct thread {
    struct bpf_timer timer;

    st_u64 off; /* clock when it left its CPU, without the lowest bit; or RUNNING, or 0 */

    st_u64 task; /* kernel address; 0: the slot is free */

    st_u32 slot; /* its own number */

    st_u32 hist; /* where its histogram is: measure.bpf.h */

    st_u64 idle_since; /* clock when it left its CPU to wait for work; 0: it does not, or it is not noted */

    st_u64 idle_ip; /* and where, as in struct wait_key */

    st_u32 idle_depth;

    st_u64 off_jiffies;

    st_u64 waker; /* pid << 32 | tid */

    st_u32 waker_ctx; /* ST_WAKER_NONE: not woken yet */

    st_u32 state;

    st_s32 syscall;

    st_u32 flags; /* ST_STALL_IDLE, ST_STALL_COMPAT */

    st_u32 cpu;

    st_u32 next_tid;

    st_u32 armed; /* the timer is, or will be looked at by its callback */

    st_u32 emit; /* a record in `pending` waits for the thread's user stack */

    st_u32 tries; /* to get it out */

    st_u32 timer_ready;

    st_u32 timer_missing; /* is counted in without_timer */

    st_u64 timer_tried; /* jiffies when the last try to make it failed */

    st_u64 ktime_offset; /* bpf_ktime_get_ns() - clock, when the timer was armed */

    st_u32 offset_rough; /* that clock was behind: it holds for the wait of then only */

    st_u64 seq; /* of the record that told it as ongoing */

    st_u64 back_since; /* ns that it is back already, unseen; 0: it comes back now */

    st_u64 css; /* FOLLOW_CGROUP: the css_set that was looked at last, and what was found */

    st_u32 member;

    char next_comm[16]; /* who preempted it */
};

#include "triggers/bpf/context.bpf.h"
#define thread_begins_late thread_begins_late
static void thread_begins_late(struct thread *t, struct task_struct *task);
#include "triggers/bpf/follow.bpf.h"
#include "triggers/bpf/measure.bpf.h"
#include "triggers/bpf/member.bpf.h"
#include "triggers/bpf/output.bpf.h"
#include "triggers/bpf/waits.bpf.h"

const volatile struct offcpu_config offcpu;

/* The kernel allocates a timer without taking locks, so it may be done where the run queue's lock is held. */
const volatile st_u32 make_timers_anywhere;

st_u64 threshold_ns;
st_u32 without_timer; /* threads for whose timer the kernel had no memory yet */
st_u32 broken_places; /* this kernel's per-CPU section is not as BTF tells */

/* The run queue's clock (sched_clock, ns) is up to date at sched_switch and costs three loads;
 * bpf_ktime_get_ns() reads the clock source: more than the rest of the program. */
static __always_inline st_u64 switch_clock(struct task_struct *running)
{
    return run_queue(running)->clock & ~ONGOING;
}

#endif
