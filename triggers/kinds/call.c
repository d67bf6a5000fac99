/* call: its BPF programs and its sentence. */
#include "triggers/function_kit.h"
#include "triggers/record_text.h"

#include "triggers/call.skel.h"

static int take(struct trg_state *s, struct st_error *err)
{
    const struct trg_function *f;
    struct call_bpf *bpf = call_bpf__open();
    enum trg_kernel_hook hook = TRG_HOOK_FENTRY;
    int rc;

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    rc = trg_function_open(s, &hook, err);
    if (rc)
        return rc;
    f = s->own;
    trg_function_choose(f, bpf->progs.call_uprobe, bpf->progs.call_kprobe, bpf->progs.call_fentry, hook);
    return 0;
}

static int call_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static int call_start(struct trg_state *s, struct st_error *err)
{
    struct call_bpf *bpf = s->skeleton;
    int rc = trg_kit_start(s, err);

    if (!rc)
        rc = trg_function_attach(s, bpf->progs.call_uprobe, bpf->progs.call_kprobe, false, err);
    return rc;
}

static bool unseen(struct trg_state *s, char *text, size_t size)
{
    struct call_bpf *bpf = s->skeleton;

    snprintf(text, size, "not entered since armed");
    return !bpf->bss->entered;
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "called the function");
    trg_put_attribute(&o, r, "arg0", " (", "");
    trg_put_attribute(&o, r, "arg1", ", ", "");
    trg_put_attribute(&o, r, "arg2", ", ", ", ...)");
}

static const struct trg_key keys[] = {TRG_KEY_IF_ENTRY, TRG_KEY_END};

const struct trg_kind trg_call = {
    .name = "call",
    .record_kind = ST_STALL_CALL,
    .example = "call:abort",
    .measures = "time between calls",
    .takes = &trg_function_name,
    .hits = true,
    .keys = keys,
    .open = call_open,
    .start = call_start,
    TRG_KIT_OPS,
    .unseen = unseen,
    .describe = describe,
};
