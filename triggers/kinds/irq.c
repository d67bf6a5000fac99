/* irq: its BPF programs and its sentence. */
#include "triggers/kit.h"
#include "triggers/record_text.h"

#include "triggers/irq.skel.h"

#include <string.h>

#define HANDLER 32 /* irq.bpf.c, NAME */

static int take(struct trg_state *s, struct st_error *err)
{
    struct irq_bpf *bpf = irq_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    memcpy((char *)bpf->rodata->only, s->how.spec->options->name, HANDLER);
    return 0;
}

static int irq_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "was interrupted for");
    trg_put_time(&o, r);
    trg_put_attribute(&o, r, "irq", " by irq ", "");
    trg_put_attribute(&o, r, "handler", " ", "");
    trg_put(&o, " on CPU %u", r->cpu);
}

static bool set_name(struct trg_options *o, const char *word)
{
    snprintf(o->name, sizeof(o->name), "%s", word);
    return strlen(word) < HANDLER;
}

static const struct trg_name what = {
    false, "the name of an interrupt's handler, as /proc/interrupts tells it", set_name, trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_END};

const struct trg_kind trg_irq = {
    .name = "irq",
    .record_kind = ST_STALL_IRQ,
    .example = "irq>500us",
    .measures = "time in a device's interrupt",
    .takes = &what,
    .keys = keys,
    .open = irq_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .describe = describe,
};
