/* The kinds of triggers. */
#include "triggers/language/kind.h"

const struct trg_kind *const trg_kinds[] = {
    &trg_offcpu, &trg_syscall, &trg_runq,       &trg_func, &trg_call, &trg_busy,     &trg_quiet, &trg_socket,
    &trg_irq,    &trg_softirq, &trg_tracepoint, &trg_usdt, &trg_bpf,  &trg_bpftrace, NULL};
