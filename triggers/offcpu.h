/* offcpu's parts among themselves. */
#ifndef ST_TRIGGERS_OFFCPU_H
#define ST_TRIGGERS_OFFCPU_H

#include "triggers/kind.h"

struct offcpu_options {
    uint32_t states; /* enum offcpu_state; 0: none named, all count */

    bool count_idle;

    uint64_t idle[OFFCPU_SYSCALLS / 64];

    uint64_t idle32[OFFCPU_SYSCALLS / 64];
};

extern const struct trg_key trg_offcpu_keys[];
void trg_offcpu_defaults(void *options);

/* trg_kind.describe (offcpu_text.c). */
void trg_offcpu_describe(const struct st_stall_record *record, trg_ksym_fn *name, void *ctx, char *text,
                         size_t size);

#endif
