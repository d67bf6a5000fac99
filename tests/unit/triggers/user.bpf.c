/* A user's own trigger: a thread of the target called sched_yield, the odd times. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "triggers/include/stalltrap.bpf.h"

char LICENSE[] SEC("license") = "GPL";

int calls;

SEC("tracepoint/syscalls/sys_enter_sched_yield")
int user_yield(void *ctx)
{
    if (stalltrap_is_target(bpf_get_current_pid_tgid() >> 32) && calls++ % 2)
        stalltrap_fire(ctx, bpf_ktime_get_ns() - 5000000, "color=blue");
    return 1;
}
