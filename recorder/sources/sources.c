/* The table of sources, and which one records. */
#include "recorder/sources/sources.h"
#include "base/nearest.h"

#include <string.h>

extern const struct rec_source_ops rec_source_intel_pt, rec_source_sample, rec_source_step;

const struct rec_source_ops *const rec_sources[] = {
    &rec_source_intel_pt,
    &rec_source_sample,
    &rec_source_step,
    NULL,
};

/* Those that `auto` may take, in this order: never `step`, which slows the target down a thousandfold. */
static const struct rec_source_ops *const automatic[] = {
    &rec_source_intel_pt,
    &rec_source_sample,
    NULL,
};

/* Every name of the command line. */
static const char *const names[] = {"auto", "intel-pt", "sample", "step"};

static int unknown(const char *name, struct st_error *err)
{
    const char *near = st_nearest(name, strlen(name), names, sizeof(names) / sizeof(names[0]));

    st_fail(err, ST_EUSAGE, "--source: there is no source '%s'", name);
    return near ? st_hint(err, "did you mean '%s'?", near) : st_hint(err, "auto, intel-pt, sample or step");
}

static int choose_automatic(const struct rec_source_config *config, const struct rec_source_ops **ops,
                            struct st_error *err)
{
    struct st_error why;

    st_fail(err, ST_ECANNOT, "no source can record here without slowing the target down much");
    for (size_t i = 0; automatic[i]; i++) {
        why = (struct st_error){0};
        if (!automatic[i]->probe(config, &why)) {
            *ops = automatic[i];
            return 0;
        }
        st_hint(err, "%s: %.200s", automatic[i]->name, why.text);
    }
    return st_hint(err, "--source step records every branch all the same, by stepping the target (slow); "
                        "`stalltrap doctor` tells more");
}

int rec_source_choose(const char *name, const struct rec_source_config *config,
                      const struct rec_source_ops **ops, struct st_error *err)
{
    if (!strcmp(name, "auto"))
        return choose_automatic(config, ops, err);
    for (size_t i = 0; rec_sources[i]; i++) {
        if (strcmp(rec_sources[i]->name, name) != 0)
            continue;
        *ops = rec_sources[i];
        return rec_sources[i]->probe(config, err);
    }
    return unknown(name, err);
}

const char *rec_source_instead(const char *name, const struct rec_source_ops *ops)
{
    return !strcmp(name, "auto") && ops == &rec_source_sample
               ? " (no Intel PT here, so calls are approximate: `stalltrap doctor`)"
               : "";
}

void rec_source_complete(struct st_completion *c)
{
    st_complete_word(c, "auto", NULL);
    for (size_t i = 0; rec_sources[i]; i++)
        st_complete_word(c, rec_sources[i]->name, NULL);
}
