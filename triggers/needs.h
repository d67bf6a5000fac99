/* What the programs of the kinds need of the kernel. */
#ifndef ST_TRIGGERS_NEEDS_H
#define ST_TRIGGERS_NEEDS_H

#include "base/error.h"

#include <stdbool.h>

struct trg_need {
    const char *key; /* for programs: "bpf.timer" */

    const char *label; /* for people */

    const char *what; /* in a sentence: what lacks */

    const char
        *since; /* "5.15": the version of Linux that brought it; NULL: how the kernel was built decides */

    int helper; /* of enum bpf_func_id; 0: it is no helper */
};

/* Receives each, and whether the kernel has it. */
typedef void trg_need_fn(void *ctx, const struct trg_need *need, bool there);

/* Tries each of them, in the order of their age. Needs the rights that trg_check_bpf() asks for. */
void trg_each_need(trg_need_fn *fn, void *ctx);

/* 0, or ST_ECANNOT with one sentence that names all that lack, and a hint what does without. */
int trg_check_needs(struct st_error *err);

/* The kernel's lockdown (kernel_lockdown(7)): "integrity", "confidentiality", or NULL where there is none. */
const char *trg_lockdown(void);

/* Whether programs can be attached to the tracepoint with its arguments' types. */
bool trg_has_btf_tracepoint(const char *name);

/* How many arguments a tracepoint gives to a BPF program that knows their types; 0: there is no such
 * tracepoint. */
unsigned trg_tracepoint_arguments(const char *name);

#endif
