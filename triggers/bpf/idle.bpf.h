/* Which system calls are waits for work. */
#ifndef ST_TRIGGERS_BPF_IDLE_BPF_H
#define ST_TRIGGERS_BPF_IDLE_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"

static __always_inline bool in_set(const volatile st_u64 *set, st_u32 nr)
{
    if (nr >= OFFCPU_SYSCALLS)
        return false;
    asm volatile("" : "+r"(nr)); /* the verifier sees the bound where it is used */
    nr &= OFFCPU_SYSCALLS - 1;
    return set[nr / 64] >> (nr % 64) & 1;
}

enum {
    NR_FUTEX = 202,
    NR_IO_URING_ENTER = 426,
    NR32_FUTEX = 240,
    NR32_FUTEX_TIME64 = 422,
    FUTEX_CMD_MASK = 0x7f,
    FUTEX_WAIT_BITSET = 9,
    IORING_ENTER_GETEVENTS = 1,
};

/* System call `nr` (not negative) with these registers; `compat`: a 32-bit one. */
static __always_inline bool is_idle_syscall(const volatile struct idle_config *idle, struct pt_regs *regs,
                                            st_s32 nr, bool compat)
{
    if (compat) {
        if (nr == NR32_FUTEX || nr == NR32_FUTEX_TIME64)
            return (regs->cx & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET || in_set(idle->calls32, nr);
        if (nr == NR_IO_URING_ENTER)
            return regs->si & IORING_ENTER_GETEVENTS || in_set(idle->calls32, nr);
        return in_set(idle->calls32, nr);
    }
    if (nr == NR_FUTEX && (regs->si & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        return true;
    if (nr == NR_IO_URING_ENTER && regs->r10 & IORING_ENTER_GETEVENTS)
        return true;
    return in_set(idle->calls, nr);
}

#endif
