/* Which threads are watched: a slot of per-thread state for each, found through task storage. Included by a
 * kind's BPF program, which defines struct thread (with the fields `timer`, `task` and `slot`) and the hooks
 * named below. */
#ifndef ST_TRIGGERS_BPF_FOLLOW_BPF_H
#define ST_TRIGGERS_BPF_FOLLOW_BPF_H

#include "triggers/bpf/belongs.bpf.h"

/* Slots are taken from `free_slots`, then from the never used ones; a map of timers must be an array (or a
 * hash), which is why the state is not in the task storage itself. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, 1);
    __type(value, st_u32);
} free_slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, st_u32);
} slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, st_u32);
    __type(value, char);
} pids SEC(".maps");

/* Tasks that are to be watched and could not be yet, by thread id: task storage cannot be made where the CPU
 * is in the middle of another task's (preempted there, or a map is being freed), or where memory would have
 * to be waited for. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, st_u32);
    __type(value, char);
} late SEC(".maps");

#define FILTER_WORDS 64
#define SLOT_HINTS   4096

st_u64 tgid_filter[FILTER_WORDS]; /* a bit for each process id modulo 4096 that is, or was, watched */
st_u32 slots_used;
st_u32 slots_max;    /* set by user space */
st_u32 late_tasks;   /* so many are in `late` */
st_u64 lost_threads; /* could not be watched: no slot, no memory */
st_u32 adoptions;    /* so often a task began to be watched, or was put into `late` */

/* By process id modulo SLOT_HINTS, the slot that was found last plus 1, or 0: saves the look-up in the task
 * storage, which costs as much as all else. struct thread tells whether it is right. */
st_u32 slot_hints[SLOT_HINTS];

/* The thread's slot gets its first values / is given up. Process context; `t` is otherwise unused. */
static void thread_begins(struct thread *t, struct task_struct *task);
static __always_inline void thread_ends(struct thread *t, st_u32 slot);

/* The current thread is about to exit; then its slot is given up. `ctx` is a tracing program's. */
static void thread_exits(void *ctx, struct thread *t);

/* As thread_begins(), where the run queue's lock may be held. */
#ifndef thread_begins_late
#define thread_begins_late thread_begins
#endif

static __always_inline bool maybe_followed(struct task_struct *task)
{
    st_u32 tgid = task->tgid;

    if (follow.mode != FOLLOW_PIDS)
        return true;
    return tgid_filter[tgid / 64 % FILTER_WORDS] >> (tgid % 64) & 1;
}

static __always_inline int take_slot(st_u32 *slot)
{
    if (!bpf_map_pop_elem(&free_slots, slot))
        return 0;
    *slot = __sync_fetch_and_add(&slots_used, 1);
    if (*slot < slots_max)
        return 0;
    __sync_fetch_and_add(&slots_used, -1);
    return -1;
}

static __always_inline void give_slot(st_u32 slot)
{
    bpf_map_push_elem(&free_slots, &slot, 0);
}

static __always_inline void wait_to_adopt(struct task_struct *task)
{
    st_u32 tid = task->pid;
    char nothing = 0;

    if (!bpf_map_update_elem(&late, &tid, &nothing, BPF_NOEXIST))
        __sync_fetch_and_add(&late_tasks, 1);
    else if (!bpf_map_lookup_elem(&late, &tid))
        __sync_fetch_and_add(&lost_threads, 1);
}

/* Begins to watch a task. Does nothing when it is watched. */
static __always_inline void adopt(struct task_struct *task, bool is_late)
{
    st_u32 slot, *owned, tgid = task->tgid;
    struct thread *t;

    if (bpf_task_storage_get(&slots, task, NULL, 0))
        return;
    if (take_slot(&slot) || !(t = bpf_map_lookup_elem(&threads, &slot))) {
        __sync_fetch_and_add(&lost_threads, 1);
        return;
    }
    if (is_late)
        thread_begins_late(t, task);
    else
        thread_begins(t, task);
    t->slot = slot;
    __sync_fetch_and_or(&tgid_filter[tgid / 64 % FILTER_WORDS], 1ull << (tgid % 64));
    owned = bpf_task_storage_get(&slots, task, &slot, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!owned)
        wait_to_adopt(task);
    __sync_fetch_and_add(&adoptions, 1); /* from here on it is found */
    if (owned && *owned == slot)
        return;
    thread_ends(t, slot); /* someone else was faster, or it has to be tried again */
    give_slot(slot);
}

/* Whether the task was in `late`, and is no more. */
static __always_inline bool no_longer_late(struct task_struct *task)
{
    st_u32 tid = task->pid;

    if (!late_tasks || bpf_map_delete_elem(&late, &tid))
        return false;
    __sync_fetch_and_add(&late_tasks, -1);
    return true;
}

static __noinline st_u32 *adopt_late(struct task_struct *task)
{
    if (!no_longer_late(task) || task->flags & PF_EXITING)
        return NULL;
    adopt(task, true);
    return bpf_task_storage_get(&slots, task, NULL, 0);
}

static __always_inline struct thread *thread_at(st_u32 slot)
{
    return bpf_map_lookup_elem(&threads, &slot);
}

/* NULL too for one that is about to end and still points to a slot that it has given up. */
static __noinline struct thread *find_thread(struct task_struct *task)
{
    st_u32 *owned = bpf_task_storage_get(&slots, task, NULL, 0), slot, pid = task->pid;
    struct thread *t;

    if (!owned && late_tasks)
        owned = adopt_late(task);
    if (!owned)
        return NULL;
    slot = *owned;
    t = thread_at(slot);
    if (!t || t->task != (st_u64)task)
        return NULL;
    slot_hints[pid % SLOT_HINTS] = slot + 1;
    return t;
}

/* A watched task's, or NULL: two loads for a process that is not watched. */
static __always_inline struct thread *thread_of(struct task_struct *task)
{
    st_u32 pid = task->pid;
    struct thread *t;

    if (!pid || !maybe_followed(task))
        return NULL;
    t = thread_at(slot_hints[pid % SLOT_HINTS] - 1);
    return t && t->task == (st_u64)task ? t : find_thread(task);
}

static __always_inline bool wanted(struct task_struct *task)
{
    st_u32 tgid = task->tgid;

    if (!task->pid || task->flags & PF_EXITING)
        return false;
    if (follow.mode == FOLLOW_PIDS)
        return by_name() ? tgid != follow.self && has_name(task) : bpf_map_lookup_elem(&pids, &tgid) != NULL;
    return tgid != follow.self;
}

/* Threads and processes that a watched thread makes are watched too. */
SEC("tp_btf/task_newtask")
int BPF_PROG(st_newtask, struct task_struct *task, unsigned long clone_flags)
{
    struct task_struct *parent = bpf_get_current_task_btf();

    if ((st_u32)parent->tgid == follow.self && follow.mode != FOLLOW_PIDS)
        return 0;
    if (follow.mode != FOLLOW_PIDS || thread_of(parent) ||
        (by_name() && task->pid == task->tgid && wanted(task)))
        adopt(task, false);
    return 0;
}

/* A process gets the name: a program that is started, or one that names itself. Its other threads are for
 * user space to find (trg_joined). Loaded only where processes are chosen by name. */
SEC("tp_btf/task_rename")
int BPF_PROG(st_rename, struct task_struct *task, const char *comm)
{
    if (task->pid == task->tgid && (st_u32)task->tgid != follow.self && is_name(comm))
        adopt(task, false);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(st_exit, struct task_struct *task)
{
    struct thread *t = thread_of(task);
    st_u32 slot;

    if (!t) {
        no_longer_late(task);
        return 0;
    }
    thread_exits(ctx, t);
    slot = t->slot;
    bpf_task_storage_delete(&slots, task);
    thread_ends(t, slot);
    give_slot(slot);
    return 0;
}

#endif
