/* The tracepoint sched_switch on all kernels. */
#ifndef ST_TRIGGERS_BPF_SWITCH_BPF_H
#define ST_TRIGGERS_BPF_SWITCH_BPF_H

#include "triggers/bpf/kernel.h"

/* Whether it has a fourth argument, the state that the thread leaves in (from Linux 5.18): set by user space.
 */
const volatile st_u32 switch_tells_state;

/* Without it the state is the thread's own, which who wakes it at once on another CPU may have changed
 * already. */
static __always_inline st_u32 state_left(const st_u64 *ctx, struct task_struct *prev)
{
    return switch_tells_state ? (st_u32) * (const volatile st_u64 *)&ctx[3] : prev->__state;
}

#endif
