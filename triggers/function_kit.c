/* Programs on functions. */
#include "triggers/function_kit.h"
#include "triggers/privilege.h"

#include <stdlib.h>
#include <string.h>

static bool set_name(struct trg_options *o, const char *word)
{
    const char *mark = strrchr(word, '!');
    const char *name = mark ? mark + 1 : word;

    snprintf(o->name, sizeof(o->name), "%s", word);
    return *name && mark != word && strlen(name) < TRG_FUNCTION;
}

const struct trg_name trg_function_name = {true, "the name of a function: [MODULE!]NAME", set_name,
                                           trg_no_words};

static void free_function(void *own)
{
    trg_function_free(own);
    free(own);
}

int trg_function_open(struct trg_state *s, enum trg_kernel_hook *hook, struct st_error *err)
{
    struct trg_function *f = calloc(1, sizeof(*f));
    int rc;

    if (!f)
        return st_nomem(err, "a function");
    s->own = f;
    s->free_own = free_function;
    rc = trg_find_function(s->how.spec->options->name, s->how.config, f, err);
    s->hook = "uprobe";
    if (rc || !f->kernel)
        return rc;
    rc = trg_find_kernel_hook(f->name, hook, err);
    s->hook = trg_kernel_hook_name(*hook);
    return rc;
}

void trg_function_choose(const struct trg_function *f, struct bpf_program *uprobe, struct bpf_program *kprobe,
                         struct bpf_program *fentry, enum trg_kernel_hook hook)
{
    bool by_fentry = f->kernel && hook == TRG_HOOK_FENTRY;

    bpf_program__set_autoload(uprobe, !f->kernel);
    bpf_program__set_autoload(kprobe, f->kernel && !by_fentry);
    bpf_program__set_autoload(fentry, by_fentry);
    bpf_program__set_autoattach(uprobe, false);
    bpf_program__set_autoattach(kprobe, false);
    if (by_fentry)
        bpf_program__set_attach_target(fentry, 0, f->name);
}

int trg_function_attach(struct trg_state *s, struct bpf_program *uprobe, struct bpf_program *kprobe,
                        bool returns, struct st_error *err)
{
    const struct trg_function *f = s->own;
    char what[TRG_FUNCTION + 64];
    int rc = 0;

    snprintf(what, sizeof(what), "cannot put a probe on the function '%s'", f->name);
    if (f->kernel && bpf_program__autoload(kprobe))
        return trg_kit_keep(s, bpf_program__attach_kprobe(kprobe, returns, f->name), what, err);
    for (size_t i = 0; !rc && i < f->places.n; i++)
        rc = trg_kit_keep(
            s, bpf_program__attach_uprobe(uprobe, returns, -1, f->places.at[i].path, f->places.at[i].offset),
            what, err);
    return rc;
}
