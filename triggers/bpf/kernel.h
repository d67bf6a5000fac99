/* The few kernel types that the BPF programs read, by CO-RE: only the fields in use; the offsets come from
 * the running kernel's BTF. Names and meanings: include/linux/sched.h, kernel/sched/sched.h,
 * arch/x86/include/asm/ptrace.h. */
#ifndef ST_TRIGGERS_BPF_KERNEL_H
#define ST_TRIGGERS_BPF_KERNEL_H

#include "base/stall_record.h"

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* BPF_PROG() names a context that most programs have no use for. */
#pragma clang diagnostic ignored "-Wunused-parameter"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
    st_u64 id;
};

struct cgroup_subsys_state {
    struct cgroup_subsys_state *parent;
};

struct cgroup_root {
    int hierarchy_id; /* 0: version 2 */
};

struct cgroup {
    struct cgroup_root *root;

    struct cgroup_subsys_state self;

    struct kernfs_node *kn;
};

struct css_set {
    struct cgroup *dfl_cgrp;
};

struct in6_addr {
    unsigned char bytes[16];
};

struct sock_common {
    st_u32 skc_daddr;

    st_u16 skc_dport; /* network order */

    st_u16 skc_num;

    unsigned short skc_family;

    struct in6_addr skc_v6_daddr;

    st_u32 skc_rcv_saddr; /* the own address: "any" too */

    struct in6_addr skc_v6_rcv_saddr;

    unsigned char skc_state; /* include/net/tcp_states.h */
};

struct sock {
    struct sock_common __sk_common;

    st_u16 sk_protocol;

    unsigned char sk_shutdown;

    st_u32 sk_ack_backlog; /* of a listener: connections that wait to be accepted */
};

/* A connection, in the list of those that wait to be accepted. */
struct request_sock {
    struct request_sock *dl_next;

    struct sock *sk;
};

struct request_sock_queue {
    struct request_sock *rskq_accept_head; /* the oldest */
};

struct inet_connection_sock {
    struct request_sock_queue icsk_accept_queue;
};

struct tcp_sock {
    st_u32 rcv_nxt, copied_seq, write_seq, snd_nxt, snd_una, snd_wnd, snd_cwnd, packets_out, mss_cache;

    unsigned char nonagle : 4;
};

struct sk_buff {
    struct sock *sk;

    unsigned int len;

    char cb[48];

    st_u16 transport_header;

    unsigned char *head, *data;
};

/* What TCP has in sk_buff.cb. */
struct tcp_skb_cb {
    st_u32 seq, end_seq;

    unsigned char tcp_flags; /* wider from Linux 6.15 */
};

struct socket {
    struct sock *sk;
};

struct inode {
    unsigned short i_mode;
};

struct file {
    struct inode *f_inode;

    void *private_data;
};

struct fdtable {
    unsigned int max_fds;

    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

struct thread_info {
    st_u32 status;

    st_u32 cpu;
};

struct sched_info {
    unsigned long long run_delay;

    unsigned long long last_arrival; /* the run queue's clock when the task got its CPU */

    unsigned long long last_queued; /* when it began to wait for one; 0: it does not */
};

struct task_struct;

struct rq {
    st_u64 clock;

    struct task_struct *curr;
};

struct cfs_rq {
    struct rq *rq;
};

struct sched_entity {
    struct cfs_rq *cfs_rq;
};

struct thread_struct {
    unsigned long fsbase;
};

struct file;

struct mm_struct {
    struct file *exe_file;
};

struct task_struct {
    struct thread_info thread_info;

    struct task_struct *real_parent, *group_leader;

    struct mm_struct *mm;

    struct thread_struct thread;

    struct sched_entity se;

    unsigned int __state;

    unsigned int flags;

    int prio, exit_state;

    unsigned int on_cpu; /* a byte from 7.2: CO-RE changes the size of a load of an unsigned one only */

    int pid;

    int tgid;

    st_u64 start_time; /* CLOCK_MONOTONIC */

    char comm[16];

    struct files_struct *files;

    struct css_set *cgroups;

    struct sched_info sched_info;
};

struct pt_regs {
    unsigned long r11, r10, r9, r8, ax, cx, bx, dx, si, di, bp, orig_ax, ip, flags, sp;
};

struct irqaction {
    const char *name;
};

struct timer_list {
    void (*function)(struct timer_list *);
};

struct io_kiocb {
    unsigned char opcode;
};

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__task_file {
    struct bpf_iter_meta *meta;

    struct task_struct *task;

    st_u32 fd;

    struct file *file;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;

    struct task_struct *task;
};

#pragma clang attribute pop

/* Per-CPU variables without their symbols, which kallsyms has on some kernels only (CONFIG_KALLSYMS_ALL). The
 * run queue is one, and a task that runs points to its CPU's; BTF tells how far from it the others are. */
static __always_inline struct rq *run_queue(struct task_struct *running)
{
    return running->se.cfs_rq->rq;
}

/* Differences to the run queue's place in the per-CPU section: set by user space before loading. */
const volatile long preempt_count_place;
const volatile long current_task_place;

static __always_inline st_u32 preempt_count(void)
{
    const char *base = (const char *)run_queue(bpf_get_current_task_btf());
    st_u32 count = 0;

    bpf_probe_read_kernel(&count, sizeof(count), base + preempt_count_place);
    return count;
}

/* Whether that arithmetic holds on this kernel: the current task is found by it. */
static __always_inline bool places_are_right(void)
{
    struct task_struct *current = bpf_get_current_task_btf();
    const char *base = (const char *)run_queue(current);
    st_u64 found = 0;

    bpf_probe_read_kernel(&found, sizeof(found), base + current_task_place);
    return found == (st_u64)current;
}

static __always_inline struct pt_regs *user_registers(struct task_struct *task)
{
    return (struct pt_regs *)bpf_task_pt_regs(task);
}

/* include/linux/sched.h: bits of task_struct.__state and of sched_switch's prev_state. */
enum {
    TASK_INTERRUPTIBLE = 0x1,
    TASK_UNINTERRUPTIBLE = 0x2,
    TASK_STOPPED_BIT = 0x4,
    TASK_TRACED_BIT = 0x8,
    TASK_PARKED = 0x40,
    TASK_DEAD = 0x80,
    TASK_NOLOAD = 0x400,
    TASK_NEW = 0x800,
    TASK_RTLOCK_WAIT = 0x1000,
    TASK_FROZEN = 0x8000,
};

/* include/linux/sched.h: bits of task_struct.flags. */
enum {
    PF_EXITING = 0x4,
    PF_IO_WORKER = 0x10,
    PF_SIGNALED = 0x400,     /* a signal ends it */
    PF_USER_WORKER = 0x4000, /* from 6.4; unused before */
    PF_KTHREAD = 0x200000,
};

enum {
    TS_COMPAT = 2 /* arch/x86/include/asm/thread_info.h: in a 32-bit system call */
};

/* include/linux/preempt.h */
enum {
    SOFTIRQ_SERVING = 0x100,
    HARDIRQ_MASK = 0xf0000,
    NMI_MASK = 0xf00000,
};

/* An IPv4 address in IPv6's form (::ffff:A.B.C.D), its four words as they are in memory. */
static __always_inline bool is_mapped(const void *address)
{
    const st_u32 *word = address;

    return !word[0] && !word[1] && word[2] == 0xffff0000;
}

#endif
