/* The Python frames of the thread that is current: triggers/python.h has what is read. A stall's record is
 * completed in the thread itself before it is back in user space, so these are the frames it stalled in. */
#ifndef ST_TRIGGERS_BPF_PYTHON_BPF_H
#define ST_TRIGGERS_BPF_PYTHON_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, PYTHON_PROCESSES);
    __type(key, st_u32); /* process id */
    __type(value, struct python_target);
} pythons SEC(".maps");

/* 0 where nothing can be read: the helper fills what it fails to read with zeros. Looking at what it returns
 * would double the verifier's paths each time. */
static __always_inline st_u64 user_word(st_u64 at)
{
    st_u64 word = 0;

    bpf_probe_read_user(&word, sizeof(word), (void *)at);
    return word;
}

/* What a process forked has the interpreter where its parent has it; if it is another program, no thread of
 * it is found there. */
static __always_inline struct python_target *python_of(st_u32 pid, st_u32 parent)
{
    struct python_target *python = bpf_map_lookup_elem(&pythons, &pid);

    return python ? python : bpf_map_lookup_elem(&pythons, &parent);
}

/* The state of the thread whose pthread_self() is `id` in an interpreter's list; 0: it has none there.
 * Verified once, for any arguments: inlined, its paths would be too many. */
__noinline st_u64 python_thread(st_u64 thread, st_u64 id, st_u32 id_at, st_u32 next_at)
{
    for (int i = 0; i < PYTHON_THREADS && thread; i++) {
        if (user_word(thread + id_at) == id)
            return thread;
        thread = user_word(thread + next_at);
    }
    return 0;
}

/* The frame that the thread is in; 0: it is none of Python's. */
static __always_inline st_u64 python_frame(struct python_target *python, st_u64 id)
{
    st_u64 interpreter = user_word(python->runtime + python->at.interpreters), thread = 0, frame;

    for (int i = 0; i < PYTHON_INTERPRETERS && interpreter && !thread; i++) {
        thread = python_thread(user_word(interpreter + python->at.threads), id, python->at.thread_id,
                               python->at.thread_next);
        interpreter = user_word(interpreter + python->at.interpreter_next);
    }
    if (!thread)
        return 0;
    frame = user_word(thread + python->at.frame);
    return frame && python->at.by_cframe ? user_word(frame + python->at.cframe) : frame;
}

/* Behind the frames that the record has. A frame that is none of the program's has no code. `id` is the
 * thread's pthread_self(). */
__noinline int python_walk(struct st_stall_record *r, st_u32 pid, st_u64 id, st_u32 parent)
{
    struct python_target *python = python_of(pid, parent);
    st_u64 frame = python ? python_frame(python, id) : 0;
    st_u32 begin, n = 0;

    if (!r || !frame)
        return 0;
    begin = r->ustack_n;
    if (begin > PYTHON_LAST_BEGIN)
        begin = PYTHON_LAST_BEGIN;
    r->ustack[begin] = ST_STALL_PYTHON_FRAMES;
    for (int i = 0; i < PYTHON_FRAMES && frame; i++) {
        st_u64 owner = user_word(frame + python->at.owner) & 0xff;
        st_u64 code = user_word(frame + python->at.code) & PYTHON_OBJECT_MASK;

        r->ustack[begin + 1 + 2 * i] = owner < PYTHON_OWNED_BY_C ? code : 0;
        r->ustack[begin + 2 + 2 * i] = user_word(frame + python->at.instruction);
        frame = user_word(frame + python->at.previous);
        n = 2 * i + 2;
    }
    r->ustack_n = begin + 1 + n;
    return 0;
}

static __always_inline void walk_python(struct st_stall_record *r, struct task_struct *task)
{
    python_walk(r, task->tgid, task->thread.fsbase, BPF_CORE_READ(task, real_parent, tgid));
}

#endif
