/* Whether the kernel's tracepoint tells every context switch. */
#include "base/clock.h"
#include "triggers/privilege.h"
#include "triggers/trigger.h"

#include "triggers/switches.skel.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* As in switches.bpf.c. */
struct seen {
    uint64_t last, traced, untraced;
};

/* With switches of its own: what is idle has some only now and then. */
static void sleep_often(uint64_t ns)
{
    static const struct timespec nap = {0, 200000};
    uint64_t end = st_kernel_ns() + ns;

    do
        nanosleep(&nap, NULL);
    while (st_kernel_ns() < end);
}

static int add_up(const struct bpf_map *map, struct trg_switches *switches, struct st_error *err)
{
    int cpus = libbpf_num_possible_cpus(), rc;
    struct seen *seen = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*seen));
    uint32_t zero = 0;

    if (!seen)
        return st_fail(err, ST_ENOMEM, "out of memory");
    rc = bpf_map__lookup_elem(map, &zero, sizeof(zero), seen, (size_t)cpus * sizeof(*seen), 0);
    *switches = (struct trg_switches){0, 0};
    for (int i = 0; !rc && i < cpus; i++) {
        switches->traced += seen[i].traced;
        switches->untraced += seen[i].untraced;
    }
    free(seen);
    return rc ? trg_bpf_failed(rc, "cannot read the number of context switches", err) : 0;
}

int trg_count_switches(uint64_t ns, struct trg_switches *switches, struct st_error *err)
{
    struct switches_bpf *bpf;
    int rc;

    trg_hear_libbpf();
    bpf = switches_bpf__open_and_load();
    if (!bpf)
        return trg_bpf_failed(-errno, "cannot load the program that counts context switches", err);
    rc = switches_bpf__attach(bpf);
    if (rc) {
        rc = trg_bpf_failed(rc, "cannot attach the program that counts context switches", err);
    } else {
        sleep_often(ns);
        rc = add_up(bpf->maps.seen, switches, err);
    }
    switches_bpf__destroy(bpf);
    return rc;
}
