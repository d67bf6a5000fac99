/* write: a watched thread writes into a descriptor; the text's first bytes are told. For marks only. */
#include "triggers/bpf/hit.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define NR_WRITE    1 /* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_PWRITE64 18
#define NR_WRITEV   20
#define TEXT        144 /* bytes of it; the mark has room for its other words too */

const volatile st_u32 fd;

/* struct iovec of <linux/uio.h>, in user memory. */
struct io_part {
    st_u64 base, size;
};

/* Of a gathered write the first part that is not empty, of the first two: libstdc++ writes its buffer, and
 * what is new. */
static __always_inline bool first_part(st_u64 parts, struct io_part *part)
{
    for (int i = 0; i < 2; i++) {
        if (bpf_probe_read_user(part, sizeof(*part), (const void *)(parts + i * sizeof(*part))))
            return false;
        if (part->size)
            return true;
    }
    return false;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(write_enter, struct pt_regs *regs, long nr)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct io_part part;
    struct thread *t;

    if (nr != NR_WRITE && nr != NR_WRITEV && nr != NR_PWRITE64)
        return 0;
    t = thread_of(task);
    if (!t || task->thread_info.status & TS_COMPAT)
        return 0;
    copy_args(t->args, user_registers(task), false);
    if ((st_u32)t->args[0] != fd)
        return 0;
    part.base = t->args[1];
    part.size = t->args[2];
    if (nr == NR_WRITEV && !first_part(t->args[1], &part))
        return 0;
    t->args[1] = part.base;
    t->args[2] = part.size;
    hit(ctx, t, t->slot);
    return 0;
}

static __always_inline void hit_describe(void *ctx, struct thread *t, struct st_stall_record *r)
{
    st_u64 size = t->args[2];
    st_u32 at;

    add_attribute(r, "bytes=%llu", size);
    add_attribute(r, "text=%s", "");
    at = *(volatile st_u16 *)&r->extra_n;
    if (!at || at > 48)
        return;
    at--; /* over the end of "text=" */
    if (size > TEXT)
        size = TEXT;
    asm volatile("" : "+r"(size)); /* the bound is checked on what is read */
    if (size <= TEXT && !bpf_probe_read_user(r->extra + at, size, (const void *)t->args[1]))
        r->extra_n = at + size;
}
