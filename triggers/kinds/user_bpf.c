/* bpf: an object of the user's own, made with include/stalltrap.bpf.h. */
#include "triggers/kit.h"

#include "base/infile.h"

#include "triggers/privilege.h"
#include "triggers/record_text.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As include/stalltrap.bpf.h has them. */
struct control {
    uint64_t hold_until;

    uint32_t trigger, everyone;
};

struct counts {
    uint64_t fired[64], worst, lost;
};

struct user_object {
    struct bpf_map *events, *control, *counts, *pids;

    struct control now;
};

static const char *path_of(const struct trg_state *s)
{
    return s->how.spec->options->name;
}

static int find_maps(struct trg_state *s, struct st_error *err)
{
    struct user_object *u = s->own;

    u->events = bpf_object__find_map_by_name(s->object, "stalltrap_events");
    u->control = bpf_object__find_map_by_name(s->object, "stalltrap_control");
    u->counts = bpf_object__find_map_by_name(s->object, "stalltrap_counts");
    u->pids = bpf_object__find_map_by_name(s->object, "stalltrap_pids");
    if (u->events && u->control && u->counts && u->pids &&
        bpf_map__value_size(u->control) == sizeof(u->now) &&
        bpf_map__value_size(u->counts) == sizeof(struct counts))
        return 0;
    st_fail(err, ST_EUSAGE, "--on: %s does not fire: it was not made with this version's stalltrap.bpf.h",
            path_of(s));
    return st_hint(err, "docs/triggers.md tells how such an object is made");
}

static int tell_control(struct trg_state *s, struct st_error *err)
{
    struct user_object *u = s->own;
    uint32_t zero = 0;
    int rc = bpf_map__update_elem(u->control, &zero, sizeof(zero), &u->now, sizeof(u->now), BPF_ANY);

    return rc ? trg_bpf_failed(rc, "cannot configure the BPF object", err) : 0;
}

static int tell_pids(struct trg_state *s, struct st_error *err)
{
    struct user_object *u = s->own;
    const struct trg_config *config = s->how.config;
    uint32_t command = (uint32_t)config->command;
    char yes = 1;
    int rc = 0;

    for (size_t i = 0; !rc && i < config->target->npids; i++) {
        uint32_t pid = (uint32_t)config->target->pids[i];

        rc = bpf_map__update_elem(u->pids, &pid, sizeof(pid), &yes, sizeof(yes), BPF_ANY);
    }
    if (!rc && command)
        rc = bpf_map__update_elem(u->pids, &command, sizeof(command), &yes, sizeof(yes), BPF_ANY);
    return rc ? trg_bpf_failed(rc, "cannot tell the BPF object a process id", err) : 0;
}

/* NULL with errno: EINVAL where the file was read. */
static struct bpf_object *open_object(const char *path)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    struct bpf_object *object;
    char name[32];

    if (fd < 0)
        return NULL;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    object = bpf_object__open_file(name, NULL);
    close(fd);
    errno = object ? 0 : EINVAL;
    return object;
}

static int load(struct trg_state *s, struct st_error *err)
{
    struct user_object *u = s->own;
    char what[TRG_NAME + 64];
    int rc;

    s->object = open_object(path_of(s));
    if (!s->object && errno == ENODEV)
        return st_fail(err, ST_EUSAGE, "--on: %s is no regular file", path_of(s));
    if (!s->object && errno != EINVAL)
        return st_fail_errno(err, ST_EUSAGE, "--on: cannot read %s", path_of(s));
    if (!s->object)
        return st_fail_errno(err, ST_EUSAGE, "--on: %s is no BPF object", path_of(s));
    rc = find_maps(s, err);
    if (rc)
        return rc;
    snprintf(what, sizeof(what), "the kernel did not take %s", path_of(s));
    rc = bpf_object__load(s->object);
    if (rc)
        return trg_bpf_failed(rc, what, err);
    u->now.trigger = s->how.trigger;
    u->now.everyone = s->how.config->target->kind == ST_TARGET_ALL;
    rc = tell_control(s, err);
    return rc ? rc : tell_pids(s, err);
}

static void user_close(struct trg_state *s)
{
    for (size_t i = 0; i < s->nlinks; i++)
        bpf_link__destroy(s->links[i]);
    bpf_object__close(s->object);
    free(s->own);
    free(s);
}

static int user_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    struct trg_state *s = calloc(1, sizeof(*s));
    int rc;

    if (!s || !(s->own = calloc(1, sizeof(struct user_object)))) {
        free(s);
        return st_nomem(err, "a trigger");
    }
    s->how = *how;
    trg_hear_libbpf();
    rc = load(s, err);
    if (rc)
        user_close(s);
    else
        *state = s;
    return rc;
}

static int user_set_output(struct trg_state *s, int cpu, int fd, struct st_error *err)
{
    struct user_object *u = s->own;
    int rc = bpf_map__update_elem(u->events, &cpu, sizeof(cpu), &fd, sizeof(fd), BPF_ANY);

    return rc ? trg_bpf_failed(rc, "cannot give the BPF object its output event", err) : 0;
}

static int user_start(struct trg_state *s, struct st_error *err)
{
    struct bpf_program *prog;
    int rc = 0;

    bpf_object__for_each_program(prog, s->object)
    {
        char what[TRG_NAME + 256];

        snprintf(what, sizeof(what), "cannot attach the program '%s' (%s) of %s", bpf_program__name(prog),
                 bpf_program__section_name(prog), path_of(s));
        if (!rc)
            rc = trg_kit_keep(s, bpf_program__attach(prog), what, err);
    }
    return rc;
}

static void user_hold(struct trg_state *s, uint64_t until_ns)
{
    struct user_object *u = s->own;

    u->now.hold_until = until_ns;
    tell_control(s, NULL);
}

static void user_complete(struct trg_state *s, struct st_stall_record *r)
{
    (void)s;
    trg_kit_name_threads(r);
}

/* Sums what all CPUs counted. */
static int read_counts(struct trg_state *s, struct counts *sum)
{
    struct user_object *u = s->own;
    int cpus = libbpf_num_possible_cpus(), rc = -ENOMEM;
    struct counts *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
    uint32_t zero = 0;

    memset(sum, 0, sizeof(*sum));
    if (each)
        rc = bpf_map__lookup_elem(u->counts, &zero, sizeof(zero), each, (size_t)cpus * sizeof(*each), 0);
    for (int i = 0; !rc && i < cpus; i++) {
        for (int power = 0; power < 64; power++)
            sum->fired[power] += each[i].fired[power];
        sum->worst = each[i].worst > sum->worst ? each[i].worst : sum->worst;
        sum->lost += each[i].lost;
    }
    free(each);
    return rc;
}

static int user_histogram(struct trg_state *s, struct hist *sum, struct st_error *err)
{
    struct counts counts;
    int rc = read_counts(s, &counts);

    memset(sum, 0, sizeof(*sum));
    for (int power = 0; power < 64; power++)
        sum->bucket[power * HIST_STEPS + HIST_STEPS - 1] = counts.fired[power];
    sum->worst = counts.worst;
    return rc ? trg_bpf_failed(rc, "cannot read the histogram", err) : 0;
}

static uint64_t user_lost(struct trg_state *s)
{
    struct counts counts;

    return read_counts(s, &counts) ? 0 : counts.lost;
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, r->measured_ns ? "fired the BPF object after" : "fired the BPF object");
    if (r->measured_ns)
        trg_put_time(&o, r);
    trg_put_attributes(&o, r);
}

static bool set_name(struct trg_options *o, const char *word)
{
    size_t len = strlen(word);

    snprintf(o->name, sizeof(o->name), "%s", word);
    return len > 2 && !strcmp(word + len - 2, ".o");
}

static const struct trg_name what = {true, "a BPF object: FILE.o", set_name, trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_END};

const struct trg_kind trg_bpf = {
    .name = "bpf",
    .record_kind = ST_STALL_BPF,
    .example = "bpf:yields.o",
    .measures = "what it fired for",
    .takes = &what,
    .hits = true,
    .own_programs = true,
    .keys = keys,
    .open = user_open,
    .set_output = user_set_output,
    .start = user_start,
    .hold = user_hold,
    .complete = user_complete,
    .histogram = user_histogram,
    .lost = user_lost,
    .close = user_close,
    .describe = describe,
};
