/* What func and call share: they find the function, choose the programs that can see it, and attach them. */
#ifndef ST_TRIGGERS_FUNCTION_KIT_H
#define ST_TRIGGERS_FUNCTION_KIT_H

#include "triggers/functions.h"
#include "triggers/kit.h"

/* [MODULE!]NAME */
extern const struct trg_name trg_function_name;

/* Finds the function that the trigger names: s->own, a struct trg_function. */
int trg_function_open(struct trg_state *s, enum trg_kernel_hook *hook, struct st_error *err);

/* Loads the one that can see it, not the others. */
void trg_function_choose(const struct trg_function *f, struct bpf_program *uprobe, struct bpf_program *kprobe,
                         struct bpf_program *fentry, enum trg_kernel_hook hook);

/* Attaches what bpf_object__attach_skeleton() did not: at the entry, or at the return. */
int trg_function_attach(struct trg_state *s, struct bpf_program *uprobe, struct bpf_program *kprobe,
                        bool returns, struct st_error *err);

#endif
