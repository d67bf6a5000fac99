/* write: what a watched thread writes into a descriptor (marks only). */
#include "triggers/write.h"
#include "triggers/kit.h"

#include "triggers/write.skel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int take(struct trg_state *s, struct st_error *err)
{
    struct write_bpf *bpf = write_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    bpf->rodata->fd = (uint32_t)strtoul(s->how.spec->options->name, NULL, 10);
    return 0;
}

static int write_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

/* Hits of it are marks: no record is ever described. */
static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    (void)r;
    (void)name;
    (void)ctx;
    snprintf(text, size, "wrote");
}

bool trg_set_descriptor(struct trg_options *o, const char *word)
{
    char *end;
    unsigned long fd;

    if (*word < '0' || *word > '9')
        return false;
    errno = 0;
    fd = strtoul(word, &end, 10);
    snprintf(o->name, sizeof(o->name), "%s", word);
    return !*end && !errno && fd <= INT_MAX;
}

static const struct trg_name what = {true, "the number of a descriptor", trg_set_descriptor, trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_END};

const struct trg_kind trg_write = {
    .name = "write",
    .record_kind = ST_STALL_TRACEPOINT,
    .example = "write:2",
    .measures = "time between writes",
    .takes = &what,
    .hits = true,
    .keys = keys,
    .open = write_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .describe = describe,
};
