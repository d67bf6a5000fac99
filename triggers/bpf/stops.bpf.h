/* Who sent a watched process the signal that stopped it. Behind follow.bpf.h. */
#ifndef ST_TRIGGERS_BPF_STOPS_BPF_H
#define ST_TRIGGERS_BPF_STOPS_BPF_H

#include "triggers/bpf/follow.bpf.h"

/* arch/x86/include/uapi/asm/signal.h */
enum {
    SIGNAL_CONTINUE = 18,
    SIGNAL_STOP = 19,
    SIGNAL_TTOU = 22, /* and SIGTSTP, SIGTTIN between them */
    SIGNAL_DELIVERED = 0,
};

struct stop_sent {
    st_u64 continued; /* when; 0: not yet */

    st_u32 tid, signal;

    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, st_u32); /* process */
    __type(value, struct stop_sent);
} stops_sent SEC(".maps");

static __always_inline void note_continue(struct task_struct *task)
{
    st_u32 pid = task->tgid;
    struct stop_sent *sent = bpf_map_lookup_elem(&stops_sent, &pid);

    if (sent && !sent->continued)
        sent->continued = bpf_ktime_get_ns();
}

/* A process that is stopped already is not stopped by the next one. */
static __noinline void note_stop(struct task_struct *task, st_u32 signal)
{
    struct stop_sent sent = {.signal = signal}, *before;
    st_u32 pid = task->tgid;

    before = bpf_map_lookup_elem(&stops_sent, &pid);
    if (before && !before->continued)
        return;
    sent.tid = (st_u32)bpf_get_current_pid_tgid();
    bpf_get_current_comm(sent.comm, sizeof(sent.comm));
    bpf_map_update_elem(&stops_sent, &pid, &sent, BPF_ANY);
}

/* Current is the sender, also where the kernel sends it for a thread: one that reads from a terminal that is
 * not its own stops itself. */
SEC("tp_btf/signal_generate")
int BPF_PROG(st_signal, int sig, void *info, struct task_struct *task, int group, int result)
{
    if (sig < SIGNAL_CONTINUE || sig > SIGNAL_TTOU || !thread_of(task))
        return 0;
    if (sig == SIGNAL_CONTINUE) /* it does, also where the signal itself is ignored */
        note_continue(task);
    else if (result == SIGNAL_DELIVERED)
        note_stop(task, sig);
    return 0;
}

/* What stopped the process of a record while what it tells went on; NULL: nothing was seen. The signal may be
 * older than the stall: it ends the wait for work, and what is measured begins with that end. */
static __always_inline struct stop_sent *stop_within(const struct st_stall_record *r)
{
    st_u32 pid = r->pid;
    struct stop_sent *sent = bpf_map_lookup_elem(&stops_sent, &pid);

    return sent && (!sent->continued || sent->continued >= r->start_ktime) ? sent : NULL;
}

/* What stopped the thread of a record. */
static __always_inline struct stop_sent *stop_of(const struct st_stall_record *r)
{
    return r->state & TASK_STOPPED_BIT ? stop_within(r) : NULL;
}

#endif
