/* usdt: its BPF program and its sentence. Where the probe is, and its arguments, are read by a child without
 * privilege (triggers/elf_probes.c); libbpf, which reads them in the process that asks, never sees the file.
 */
#include "triggers/elf_read.h"
#include "triggers/functions.h"
#include "triggers/kit.h"
#include "triggers/privilege.h"
#include "triggers/record_text.h"

#include "triggers/usdt.skel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SITES = 1024,
    MOST_SPECS = 256, /* BPF_USDT_MAX_SPEC_CNT */
};

struct probe {
    char path[PATH_MAX], provider[64], name[64];

    struct trg_probe_site sites[MOST_SITES];

    struct bpf_link *links[MOST_SITES]; /* of the sites; NULL: not attached */

    size_t n;
};

/* What <bpf/usdt.bpf.h>, which reads the arguments, finds in its map __bpf_usdt_specs. Newer ones have fields
 * in the upper bytes of `kind`, where 0 means as before. */
struct spec {
    struct {
        uint64_t value;

        uint32_t kind;

        int16_t reg; /* bytes into struct pt_regs */

        bool has_sign;

        char shift; /* bits that are not its own */
    } arguments[TRG_PROBE_ARGUMENTS];

    uint64_t cookie;

    int16_t n;
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

/* The child may have been taken over by what it read. */
static int find_sites(struct probe *p, struct st_error *err)
{
    struct st_confined child = {.patience = TRG_ELF_PATIENCE};
    char question[sizeof(p->provider) + sizeof(p->name)], what[256];
    int size = snprintf(question, sizeof(question), "%s%c%s", p->provider, 0, p->name) + 1;
    uint64_t length = 0;
    ssize_t n;

    snprintf(what, sizeof(what), "look for the probe %s:%s in", p->provider, p->name);
    n = trg_elf_ask(&child, p->path, what, trg_elf_probes, question, (size_t)size, p->sites, sizeof(p->sites),
                    &length, err);
    st_confined_close(&child);
    if (n < 0) {
        st_prefix(err, "--on: ");
        return (int)n;
    }
    p->n = (size_t)n / sizeof(p->sites[0]);
    if (!p->n)
        return st_fail(err, ST_EUSAGE, "--on: %s has no probe %s:%s", p->path, p->provider, p->name);
    if (!trg_probe_are_sound(p->sites, p->n, length))
        return st_fail(err, ST_EBADFILE, "--on: the probe %s:%s is not within %s", p->provider, p->name,
                       p->path);
    return 0;
}

static void free_probe(void *own)
{
    struct probe *p = own;

    for (size_t i = 0; i < p->n; i++)
        bpf_link__destroy(p->links[i]);
    free(p);
}

static int take(struct trg_state *s, struct st_error *err)
{
    struct usdt_bpf *bpf = usdt_bpf__open();
    struct probe *p;
    int rc;

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
    s->free_own = free_probe;
    split(s->how.spec->options->name, p);
    rc = trg_find_file(p->path, s->how.config, p->path, err);
    return rc ? rc : find_sites(p, err);
}

static int usdt_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static struct spec spec_of(const struct trg_probe_site *site)
{
    struct spec spec = {.n = (int16_t)site->n};

    for (size_t i = 0; i < site->n; i++) {
        const struct trg_probe_argument *a = &site->arguments[i];

        spec.arguments[i].value = (uint64_t)a->value;
        spec.arguments[i].kind = a->kind;
        spec.arguments[i].reg = (int16_t)(a->reg * 8);
        spec.arguments[i].has_sign = a->size < 0;
        spec.arguments[i].shift = (char)(64 - 8 * (a->size < 0 ? -a->size : a->size));
    }
    return spec;
}

/* Puts the arguments of a place into the map, once for all places that have the same. Returns which entry it
 * is, or -1: there are too many. */
static int put_spec(struct bpf_map *map, const struct probe *p, size_t site, int *specs, int *n)
{
    struct spec spec = spec_of(&p->sites[site]);

    for (size_t i = 0; i < site; i++)
        if (p->sites[i].n == p->sites[site].n &&
            !memcmp(p->sites[i].arguments, p->sites[site].arguments, sizeof(p->sites[i].arguments)))
            return specs[i];
    if (*n == MOST_SPECS || bpf_map__update_elem(map, n, sizeof(*n), &spec, sizeof(spec), BPF_ANY))
        return -1;
    return (*n)++;
}

static int attach(struct usdt_bpf *bpf, struct probe *p, struct st_error *err)
{
    int specs[MOST_SITES], n = 0;

    if (bpf_map__value_size(bpf->maps.__bpf_usdt_specs) != sizeof(struct spec))
        return st_fail(err, ST_EFAIL,
                       "this program was built with a libbpf whose probes have other arguments");
    for (size_t i = 0; i < p->n; i++) {
        LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = p->sites[i].semaphore);

        specs[i] = put_spec(bpf->maps.__bpf_usdt_specs, p, i, specs, &n);
        if (specs[i] < 0)
            return st_fail(err, ST_EFAIL,
                           "cannot attach to the probe: its places have too many different arguments");
        opts.bpf_cookie = (uint64_t)specs[i];
        p->links[i] =
            bpf_program__attach_uprobe_opts(bpf->progs.usdt_hit, -1, p->path, p->sites[i].offset, &opts);
        if (!p->links[i])
            return trg_bpf_failed(-errno, "cannot attach to the probe", err);
    }
    return 0;
}

static int usdt_start(struct trg_state *s, struct st_error *err)
{
    int rc = trg_kit_start(s, err);

    return rc ? rc : attach(s->skeleton, s->own, err);
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
