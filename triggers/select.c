/* Loads and attaches the programs of select.bpf.c. */
#include "triggers/select.h"
#include "triggers/bpf/config.h"
#include "triggers/places.h"
#include "triggers/privilege.h"
#include "triggers/select_ring.h"

#include "triggers/select.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/perf_event.h>

enum {
    SLOTS = 32768,      /* threads at once, */
    SLOTS_MANY = 65536, /* and of the whole machine, where the cgroup they are in tells who is chosen */
};

struct trg_select {
    struct select_bpf *bpf;

    struct select_ring *rings; /* one a CPU, shared with the kernel; NULL: not mapped */

    size_t nrings;

    uint64_t *taken; /* of each ring */

    struct select_switch copy[SELECT_RING];
};

static int failed(int rc, const char *what, struct st_error *err)
{
    return trg_bpf_failed(rc, what, err);
}

static int configure(struct trg_select *s, const struct trg_select_config *config, struct st_error *err)
{
    struct select_bpf *bpf = s->bpf;
    const struct st_target *target = config->target;
    bool by_name = target->kind == ST_TARGET_COMM, by_cgroup = target->kind == ST_TARGET_CGROUP;
    uint32_t slots = by_cgroup ? SLOTS_MANY : SLOTS;
    struct trg_places places;
    int rc = trg_find_places(&places, err);

    if (rc)
        return rc;
    bpf->rodata->preempt_count_place = places.preempt_count;
    bpf->rodata->current_task_place = places.current_task;
    bpf->rodata->follow.mode = by_cgroup ? FOLLOW_CGROUP : FOLLOW_PIDS;
    bpf->rodata->follow.cgroup = target->group.id;
    if (by_name)
        snprintf(bpf->rodata->follow.comm, sizeof(bpf->rodata->follow.comm), "%s", target->comm);
    bpf_program__set_autoload(bpf->progs.st_rename, by_name);
    bpf->rodata->follow.self = (uint32_t)getpid();
    bpf->rodata->switch_type = (uint32_t)config->switch_type;
    bpf->rodata->waking_type = (uint32_t)config->waking_type;
    bpf->bss->slots_max = slots;
    bpf_map__set_max_entries(bpf->maps.threads, slots);
    bpf_map__set_max_entries(bpf->maps.free_slots, slots);
    bpf_map__set_max_entries(bpf->maps.switches, (uint32_t)s->nrings);
    if (target->npids > bpf_map__max_entries(bpf->maps.pids))
        bpf_map__set_max_entries(bpf->maps.pids, (uint32_t)target->npids);
    rc = select_bpf__load(bpf);
    return rc ? failed(rc, "the kernel did not take the BPF programs that select events", err) : 0;
}

static int add_pids(struct trg_select *s, const struct st_target *target, struct st_error *err)
{
    char yes = 1;
    int rc = 0;

    for (size_t i = 0; !rc && i < target->npids; i++) {
        uint32_t pid = (uint32_t)target->pids[i];

        rc = bpf_map__update_elem(s->bpf->maps.pids, &pid, sizeof(pid), &yes, sizeof(yes), BPF_ANY);
    }
    return rc ? failed(rc, "cannot tell the BPF program a process id", err) : 0;
}

static int map_rings(struct trg_select *s, struct st_error *err)
{
    int fd = bpf_map__fd(s->bpf->maps.switches);
    void *at = mmap(NULL, s->nrings * sizeof(*s->rings), PROT_READ, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return failed(-errno, "cannot map the rings of context switches", err);
    s->rings = at;
    return 0;
}

static struct trg_select *new_select(size_t cpus)
{
    struct trg_select *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->nrings = cpus;
    s->taken = calloc(cpus, sizeof(*s->taken));
    if (s->taken)
        return s;
    free(s);
    return NULL;
}

int trg_select_open(const struct trg_select_config *config, struct trg_select **select, struct st_error *err)
{
    struct trg_select *s;
    int rc = trg_check_bpf(false, err), cpus;

    if (rc)
        return rc;
    cpus = libbpf_num_possible_cpus();
    if (cpus < 0)
        return failed(cpus, "cannot count the CPUs", err);
    s = new_select((size_t)cpus);
    if (!s)
        return st_nomem(err, "what selects events");
    trg_hear_libbpf();
    s->bpf = select_bpf__open();
    if (!s->bpf)
        rc = failed(-errno, "cannot open the BPF programs that select events", err);
    if (!rc)
        rc = configure(s, config, err);
    if (!rc)
        rc = map_rings(s, err);
    if (!rc)
        rc = add_pids(s, config->target, err);
    if (rc)
        trg_select_close(s);
    else
        *select = s;
    return rc;
}

int trg_select_set_output(struct trg_select *s, enum trg_select_output output, int cpu, int fd,
                          struct st_error *err)
{
    struct bpf_map *const maps[] = {s->bpf->maps.switches_wait, s->bpf->maps.switch_marks,
                                    s->bpf->maps.wake_marks};
    int rc = bpf_map__update_elem(maps[output], &cpu, sizeof(cpu), &fd, sizeof(fd), BPF_ANY);

    return rc ? failed(rc, "cannot give the BPF program its output event", err) : 0;
}

int trg_select_filter(struct trg_select *s, int fd, struct st_error *err)
{
    if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(s->bpf->progs.select_sample)))
        return 0;
    return failed(-errno, "cannot filter samples by a BPF program", err);
}

int trg_select_adopt(struct trg_select *s, struct st_error *err)
{
    struct bpf_link *link = bpf_program__attach_iter(s->bpf->progs.select_adopt, NULL);
    char nothing[16];
    int fd, rc = 0;

    if (!link)
        return failed(-errno, "cannot walk the kernel's list of threads", err);
    fd = bpf_iter_create(bpf_link__fd(link));
    if (fd < 0 || read(fd, nothing, sizeof(nothing)) < 0)
        rc = failed(-errno, "cannot walk the kernel's list of threads", err);
    if (fd >= 0)
        close(fd);
    bpf_link__destroy(link);
    if (!rc && s->bpf->bss->broken_places)
        rc = st_fail(err, ST_ECANNOT, "this kernel keeps its per-CPU variables elsewhere than its BTF tells");
    return rc;
}

int trg_select_start(struct trg_select *s, struct st_error *err)
{
    int rc = select_bpf__attach(s->bpf);

    return rc ? failed(rc, "cannot attach the BPF programs that select events", err)
              : trg_select_adopt(s, err);
}

struct trg_select_switches trg_select_take(struct trg_select *s, int cpu)
{
    if (cpu < 0 || (size_t)cpu >= s->nrings)
        return (struct trg_select_switches){0};
    return trg_ring_take(&s->rings[cpu], &s->taken[cpu], s->copy);
}

void trg_select_set_pace(struct trg_select *s, struct select_pace pace)
{
    s->bpf->bss->pace.shared_ns = pace.shared_ns;
    s->bpf->bss->pace.own_ns = pace.own_ns;
}

uint32_t trg_select_threads(const struct trg_select *s)
{
    return s->bpf->rodata->follow.mode == FOLLOW_CGROUP ? s->bpf->bss->members : s->bpf->bss->slots_used;
}

struct select_left trg_select_left(const struct trg_select *s)
{
    return s->bpf->bss->left;
}

uint64_t trg_select_lost(const struct trg_select *s)
{
    return s->bpf->bss->lost_records + s->bpf->bss->lost_threads;
}

void trg_select_close(struct trg_select *s)
{
    if (!s)
        return;
    if (s->rings)
        munmap(s->rings, s->nrings * sizeof(*s->rings));
    select_bpf__destroy(s->bpf);
    free(s->taken);
    free(s);
}
