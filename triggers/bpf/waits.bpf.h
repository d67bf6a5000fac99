/* Where threads wait for work. What is idle is a place, not a system call: a server's loop comes back to the
 * same one again and again, and who sleeps elsewhere is stalled. The place is the system call, its return
 * address and the depth of the stack there. The depth stands for the call path: most code is built without
 * frame pointers, and walking it by them would give what happens to lie there.
 *
 * In code whose depth tells nothing (a JIT's) the path into a wait is often one for all. There, what a thread
 * waits on tells more: a worker of the JVM waits for work on one word of memory, sleeps on another, and waits
 * for a lock on a third. */
#ifndef ST_TRIGGERS_BPF_WAITS_BPF_H
#define ST_TRIGGERS_BPF_WAITS_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/idle.bpf.h"
#include "triggers/bpf/kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1); /* set by user space */
    __type(key, struct wait_key);
    __type(value, struct wait_place);
} waits SEC(".maps");

/* Zeros (an array of bytes: the skeleton does not know the struct). */
const char no_place[sizeof(struct wait_place)] __attribute__((aligned(8))) = {0};

enum { NR_POLL = 7, NR_NANOSLEEP = 35, NR_RESTART_SYSCALL = 219, NR_CLOCK_NANOSLEEP = 230 };

/* Whether it was waited there in that call before. */
static __always_inline bool is_known_as(struct wait_key *key, st_u32 nr)
{
    key->syscall = nr;
    return bpf_map_lookup_elem(&waits, key) != NULL;
}

/* A wait that a stop or the freezer cut in two is continued by restart_syscall(): at the same place, under
 * another number. These are the calls that leave a restart_block. */
static __noinline void find_restarted(struct wait_key *key)
{
    if (!is_known_as(key, NR_POLL) && !is_known_as(key, NR_CLOCK_NANOSLEEP) && !is_known_as(key, NR_FUTEX) &&
        !is_known_as(key, NR_NANOSLEEP))
        key->syscall = NR_RESTART_SYSCALL;
}

static __always_inline void settle_restarted(struct wait_key *key)
{
    if (key->syscall == NR_RESTART_SYSCALL)
        find_restarted(key);
}

static __always_inline void wait_key_of(struct wait_key *key, const volatile struct idle_config *idle,
                                        struct task_struct *task, struct pt_regs *regs, st_s32 nr,
                                        bool compat)
{
    key->id = task->tgid;
    key->of = WAIT_OF_PROCESS;
    key->ip = regs->ip;
    key->syscall = (st_u32)nr | (compat ? WAIT_COMPAT : 0);
    key->depth = idle->by_depth ? regs->sp & WAIT_DEPTH : 0;
    settle_restarted(key);
}

static __always_inline struct wait_place *wait_place_of(const struct wait_key *key)
{
    struct wait_place *p = bpf_map_lookup_elem(&waits, key);

    if (p)
        return p;
    bpf_map_update_elem(&waits, key, (void *)no_place, BPF_NOEXIST);
    return bpf_map_lookup_elem(&waits, key);
}

/* How often it was waited there before. */
static __noinline st_u64 count_wait(const struct wait_key *key)
{
    struct wait_place *p = wait_place_of(key);

    return p ? __sync_fetch_and_add(&p->count, 1) : 0;
}

static __always_inline st_u64 count_all(st_u32 id, st_u32 of)
{
    struct wait_key all = {.id = id, .of = of};

    return count_wait(&all) + 1;
}

/* When the first wait of a target was seen. */
st_u64 waits_since;

/* A thread that was born since: one of a server that makes a thread for each connection is never known by
 * itself. */
static __always_inline bool is_young(struct task_struct *task)
{
    if (!waits_since)
        waits_since = bpf_ktime_get_ns();
    return BPF_CORE_READ(task, start_time) > waits_since;
}

/* Whether it is usual for young threads of the process to wait there. Nothing is known of the first ones. */
static __noinline bool is_usual_for_young(const struct wait_key *key)
{
    struct wait_key young = *key;
    st_u64 here, all;

    young.of = WAIT_OF_YOUNG;
    here = count_wait(&young);
    all = count_all(young.id, WAIT_OF_YOUNG);
    return all <= WAIT_FIRST || here * WAIT_SHARE >= all;
}

enum { NR_EPOLL_WAIT = 232, NR_EPOLL_PWAIT = 281, NR_EPOLL_PWAIT2 = 441 };

/* What is waited on: the word of a futex, or the descriptor of an epoll instance; 0: in a call of another
 * kind. The two words of a condition variable are one (glibc waits on them in turn). */
static __always_inline st_u64 wait_object(const struct pt_regs *regs, st_s32 nr, bool compat)
{
    if (compat)
        return 0;
    if (nr == NR_FUTEX)
        return regs->di & ~7ull;
    if (nr == NR_EPOLL_WAIT || nr == NR_EPOLL_PWAIT || nr == NR_EPOLL_PWAIT2)
        return (st_u32)regs->di + 1;
    return 0;
}

/* Processes that a server forked, and goes on as the same program, do the same work. */
static __always_inline st_u32 pool_of(struct task_struct *task)
{
    struct file *own = BPF_CORE_READ(task, mm, exe_file);

    return own && BPF_CORE_READ(task, real_parent, mm, exe_file) == own
               ? BPF_CORE_READ(task, real_parent, tgid)
               : BPF_CORE_READ(task, tgid);
}

/* Whether a thread in its first waits waits on another object than in most before, and the threads of its
 * pool, which do the same work, seldom do. `all` is of all its waits. */
static __noinline bool is_seldom_in_pool(struct task_struct *task, const struct wait_place *all,
                                         st_u64 object)
{
    struct wait_key pool = {.id = pool_of(task), .of = WAIT_OF_POOL, .ip = 1};
    st_u64 n = all->count, waits, others;
    bool other = all->object != object;

    waits = count_wait(&pool);
    if (!other)
        return false;
    pool.ip = 2;
    others = count_wait(&pool);
    return n > WAIT_FEW && all->votes * 2 >= n && waits > WAIT_FIRST && others * WAIT_SHARE < waits;
}

/* Whether most of a thread's waits are on one object, and this one is on another that it seldom waits on.
 * `all` is of all its waits, so many. Where each wait has an object of its own, as in Python, none has most.
 */
static __noinline bool is_other_object(const struct wait_key *key, struct task_struct *task,
                                       struct wait_place *all, st_u64 object)
{
    struct wait_key other = {.id = key->id, .of = WAIT_OF_OBJECT, .ip = object, .syscall = key->syscall};
    st_u64 n = all->count;
    bool seldom = n <= WAIT_FIRST && object && all->votes && is_seldom_in_pool(task, all, object);

    if (all->object == object) {
        all->votes++;
        return false;
    }
    if (!all->votes) {
        all->object = object;
        all->votes = 1;
        return false;
    }
    all->votes--;
    if (n <= WAIT_FIRST)
        return seldom;
    return object && all->object && all->votes * 2 >= n && count_wait(&other) * WAIT_SHARE < n;
}

/* A place in one word, which is not 0. */
static __always_inline st_u64 place_word(const struct wait_key *key)
{
    return ((key->ip * 0x9e3779b97f4a7c15ull) ^ ((st_u64)key->syscall << 32 | key->depth)) | 1;
}

enum usual { UNUSUAL, USUAL, NOT_KNOWN };

/* A thread of which little is known is judged by those that do the same: the threads of its pool that waited,
 * in their first waits, where this one did last. `all` is of all its waits. */
static __noinline int usual_next(const struct wait_key *key, struct task_struct *task, struct wait_place *all)
{
    struct wait_key next = *key, from = {.of = WAIT_OF_LAST};
    st_u64 last = all->last, here, behind;

    all->last = place_word(key);
    if (!last)
        return NOT_KNOWN;
    next.of = WAIT_OF_NEXT;
    next.ip = last * 31 + key->ip;
    from.ip = last;
    next.id = from.id = pool_of(task);
    here = count_wait(&next);
    behind = count_wait(&from);
    if (behind < WAIT_FIRST)
        return NOT_KNOWN;
    return here * WAIT_SHARE >= behind ? USUAL : UNUSUAL;
}

/* Whether a wait of a thread in its first waits is for work, as far as that is known. */
static __noinline bool first_is_usual(const struct wait_key *key, struct task_struct *task,
                                      struct wait_place *all)
{
    int usual = all ? usual_next(key, task, all) : NOT_KNOWN;

    if (usual != NOT_KNOWN)
        return usual == USUAL;
    return !is_young(task) || is_usual_for_young(key);
}

/* A wait of `task` begins there, on `object`. Whether it is for work. */
static __noinline bool wait_is_usual(const struct wait_key *key, struct task_struct *task, st_u64 object)
{
    st_u64 here = count_wait(key), all = count_all(key->id, WAIT_OF_PROCESS), own, own_all;
    struct wait_key thread = *key, of_thread = {.of = WAIT_OF_THREAD};
    struct wait_place *p;
    bool other;

    thread.of = WAIT_OF_THREAD;
    thread.id = of_thread.id = task->pid;
    own = count_wait(&thread);
    own_all = count_all(thread.id, WAIT_OF_THREAD);
    p = bpf_map_lookup_elem(&waits, &of_thread);
    other = p && is_other_object(&thread, task, p, object);
    if (own_all <= WAIT_FIRST && first_is_usual(key, task, p) && !other)
        return true;
    if (!other && ((own_all > WAIT_FIRST && own * WAIT_SHARE >= own_all) || here * WAIT_SHARE >= all))
        return true;
    p = bpf_map_lookup_elem(&waits, key);
    if (p)
        __sync_fetch_and_add(&p->unusual, 1);
    return false;
}

/* It is over. */
static __noinline void wait_is_over(const struct wait_key *key, struct task_struct *task, st_u64 took,
                                    bool counted)
{
    struct wait_place *p = wait_place_of(key);

    if (!p)
        return;
    if (!counted)
        __sync_fetch_and_add(&p->count, 1);
    __sync_fetch_and_add(&p->sum, took);
    if (took <= p->longest)
        return;
    p->longest = took;
    p->tid = task->pid;
    bpf_core_read(p->comm, sizeof(p->comm), &task->comm);
}

/* A thread id may have been another thread's. */
static __always_inline void wait_forget(const volatile struct idle_config *idle, struct task_struct *task)
{
    struct wait_key all = {.of = WAIT_OF_THREAD};

    if (!idle->learned)
        return;
    all.id = BPF_CORE_READ(task, pid);
    bpf_map_delete_elem(&waits, &all);
}

/* A thread ends. A young one that waited nowhere is one wait elsewhere than at any place: most others will
 * not wait either. */
static __always_inline void wait_has_ended(const volatile struct idle_config *idle, struct task_struct *task)
{
    if (idle->learned && is_young(task))
        count_all(BPF_CORE_READ(task, tgid), WAIT_OF_YOUNG);
}

#endif
