/* func: its BPF programs and its sentence. */
#include "triggers/function_kit.h"
#include "triggers/record_text.h"

#include "triggers/func.skel.h"

/* A probe on the return changes the return address, which Go's runtime reads when it moves a stack. */
static int refuse_go(const struct trg_function *f, struct st_error *err)
{
    for (size_t i = 0; i < f->places.n; i++) {
        if (!f->places.at[i].go)
            continue;
        st_fail(
            err, ST_ECANNOT,
            "'%s' in %s is a function of Go: the probe on its return would end the program as soon as its "
            "stack moves",
            f->name, f->places.at[i].path);
        return st_hint(err,
                       "its entry can be seen, --on 'call:%s' or --mark 'func:%s'; waits are seen by syscall "
                       "and offcpu",
                       f->name, f->name);
    }
    return 0;
}

static int take(struct trg_state *s, struct st_error *err)
{
    const struct trg_function *f;
    struct func_bpf *bpf = func_bpf__open();
    enum trg_kernel_hook hook = TRG_HOOK_FENTRY;
    int rc;

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    if (s->how.config->measure_only) {
        TRG_NO_WAKERS(bpf);
        bpf_program__set_autoload(bpf->progs.span_waking, false);
    }
    rc = trg_function_open(s, &hook, err);
    if (!rc)
        rc = refuse_go(s->own, err);
    if (rc)
        return rc;
    f = s->own;
    bpf->rodata->in_kernel = f->kernel;
    trg_function_choose(f, bpf->progs.func_uprobe, bpf->progs.func_kprobe, bpf->progs.func_fentry, hook);
    trg_function_choose(f, bpf->progs.func_uretprobe, bpf->progs.func_kretprobe, bpf->progs.func_fexit, hook);
    return 0;
}

static int func_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static int func_start(struct trg_state *s, struct st_error *err)
{
    struct func_bpf *bpf = s->skeleton;
    int rc = trg_kit_start(s, err);

    /* The return first: a call that is entered is seen to leave. */
    if (!rc)
        rc = trg_function_attach(s, bpf->progs.func_uretprobe, bpf->progs.func_kretprobe, true, err);
    if (!rc)
        rc = trg_function_attach(s, bpf->progs.func_uprobe, bpf->progs.func_kprobe, false, err);
    return rc;
}

static bool unseen(struct trg_state *s, char *text, size_t size)
{
    struct func_bpf *bpf = s->skeleton;

    snprintf(text, size, "not entered since armed");
    return !bpf->bss->entered;
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    trg_put(&o, "was");
    trg_put_time(&o, r);
    trg_put(&o, " in the function");
    trg_put_attribute(&o, r, "ret", " (returned ", ")");
    trg_put_waker(&o, r, name, ctx);
}

static const struct trg_key keys[] = {TRG_KEY_IF_CALL, TRG_KEY_END};

const struct trg_kind trg_func = {
    .name = "func",
    .record_kind = ST_STALL_FUNC,
    .example = "func:malloc>100us",
    .measures = "time in the function",
    .takes = &trg_function_name,
    .keys = keys,
    .open = func_open,
    .start = func_start,
    TRG_KIT_OPS,
    .unseen = unseen,
    .describe = describe,
};
