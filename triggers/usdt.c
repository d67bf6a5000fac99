/* usdt: its BPF program and its sentence. */
#include "triggers/functions.h"
#include "triggers/kit.h"
#include "triggers/record_text.h"

#include "triggers/usdt.skel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct probe {
    char path[PATH_MAX], provider[64], name[64];
};

/* PATH:PROVIDER:NAME */
static bool split(const char *word, struct probe *p)
{
    const char *name = strrchr(word, ':');
    const char *provider = name ? memrchr(word, ':', (size_t)(name - word)) : NULL;
    size_t path = provider ? (size_t)(provider - word) : 0;

    if (!provider || !path || path >= sizeof(p->path) || !name[1] || name == provider + 1)
        return false;
    if ((size_t)(name - provider) > sizeof(p->provider) || strlen(name) > sizeof(p->name))
        return false;
    snprintf(p->path, sizeof(p->path), "%.*s", (int)path, word);
    snprintf(p->provider, sizeof(p->provider), "%.*s", (int)(name - provider - 1), provider + 1);
    snprintf(p->name, sizeof(p->name), "%s", name + 1);
    return true;
}

static int take(struct trg_state *s, struct st_error *err)
{
    struct usdt_bpf *bpf = usdt_bpf__open();
    struct probe *p;

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    s->hook = "uprobe";
    bpf_program__set_autoattach(bpf->progs.usdt_hit, false);
    p = calloc(1, sizeof(*p));
    if (!p)
        return st_nomem(err, "a probe");
    s->own = p;
    s->free_own = free;
    split(s->how.spec->options->name, p);
    return trg_find_file(p->path, s->how.config, p->path, err);
}

static int usdt_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static int usdt_start(struct trg_state *s, struct st_error *err)
{
    struct usdt_bpf *bpf = s->skeleton;
    const struct probe *p = s->own;
    struct bpf_link *link;
    int rc = trg_kit_start(s, err);

    if (rc)
        return rc;
    link = bpf_program__attach_usdt(bpf->progs.usdt_hit, -1, p->path, p->provider, p->name, NULL);
    if (!link && errno == ENOENT)
        return st_fail(err, ST_EUSAGE, "--on: %s has no probe %s:%s", p->path, p->provider, p->name);
    return trg_kit_keep(s, link, "cannot attach to the probe", err);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "hit the probe");
    trg_put_attribute(&o, r, "arg0", " (", "");
    trg_put_attribute(&o, r, "arg1", ", ", "");
    trg_put_attribute(&o, r, "arg2", ", ", "");
    if (trg_attribute(r, "arg0"))
        trg_put(&o, ")");
}

static bool set_name(struct trg_options *o, const char *word)
{
    struct probe p;

    snprintf(o->name, sizeof(o->name), "%s", word);
    return split(word, &p);
}

static const struct trg_name what = {true, "a probe: PATH:PROVIDER:NAME", set_name, trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_IF_ENTRY, TRG_KEY_END};

const struct trg_kind trg_usdt = {
    .name = "usdt",
    .record_kind = ST_STALL_USDT,
    .example = "usdt:/usr/bin/python3:python:gc__start",
    .measures = "time between hits",
    .takes = &what,
    .hits = true,
    .keys = keys,
    .open = usdt_open,
    .start = usdt_start,
    TRG_KIT_OPS,
    .describe = describe,
};
