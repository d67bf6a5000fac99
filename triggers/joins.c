/* Loads and attaches the programs of joins.bpf.c. */
#include "triggers/joins.h"
#include "triggers/bpf/config.h"
#include "triggers/bpf/joins_shared.h"
#include "triggers/privilege.h"

#include "triggers/joins.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct trg_joins {
    struct joins_bpf *bpf;

    struct ring_buffer *ring;

    uint64_t lost; /* of which is known */

    /* While they are taken. */
    const struct trg_joins_to *to;

    int rc;

    struct st_error *err;
};

static int failed(int rc, const char *what, struct st_error *err)
{
    return trg_bpf_failed(rc, what, err);
}

static int take_one(void *ctx, void *data, size_t size)
{
    struct trg_joins *joins = ctx;
    const struct join *j = data;

    if (size < sizeof(*j) || joins->rc)
        return 0;
    if (j->kind == JOIN_GONE)
        joins->rc = joins->to->gone(joins->to->ctx, joins->err);
    else
        joins->rc = joins->to->came(joins->to->ctx, (pid_t)j->pid, j->time, joins->err);
    return 0;
}

static int load(struct joins_bpf *bpf, const struct st_target *target, struct st_error *err)
{
    bool by_name = target->kind == ST_TARGET_COMM;
    int rc;

    bpf->rodata->follow.self = (uint32_t)getpid();
    bpf->rodata->follow.cgroup = target->group.id;
    if (by_name)
        snprintf(bpf->rodata->follow.comm, sizeof(bpf->rodata->follow.comm), "%s", target->comm);
    bpf_program__set_autoload(bpf->progs.join_moved, !by_name);
    bpf_program__set_autoload(bpf->progs.join_removed, !by_name);
    bpf_program__set_autoload(bpf->progs.join_named, by_name);
    rc = joins_bpf__load(bpf);
    if (rc)
        return failed(rc, "the kernel did not take the BPF programs that hear of new processes", err);
    rc = joins_bpf__attach(bpf);
    return rc ? failed(rc, "cannot attach the BPF programs that hear of new processes", err) : 0;
}

int trg_joins_open(const struct st_target *target, struct trg_joins **joins, struct st_error *err)
{
    struct trg_joins *j;
    int rc = trg_check_bpf(false, err);

    if (rc)
        return rc;
    trg_hear_libbpf();
    j = calloc(1, sizeof(*j));
    if (!j)
        return st_nomem(err, "what hears of new processes");
    j->bpf = joins_bpf__open();
    rc = j->bpf ? load(j->bpf, target, err)
                : failed(-errno, "cannot open the BPF programs that hear of new processes", err);
    if (!rc) {
        j->ring = ring_buffer__new(bpf_map__fd(j->bpf->maps.joins), take_one, j, NULL);
        if (!j->ring)
            rc = failed(-errno, "cannot map the ring of new processes", err);
    }
    if (rc)
        trg_joins_close(j);
    else
        *joins = j;
    return rc;
}

int trg_joins_fd(const struct trg_joins *joins)
{
    return ring_buffer__epoll_fd(joins->ring);
}

int trg_joins_take(struct trg_joins *joins, const struct trg_joins_to *to, bool *lost, struct st_error *err)
{
    uint64_t now;
    int rc;

    joins->to = to;
    joins->err = err;
    joins->rc = 0;
    rc = ring_buffer__consume(joins->ring);
    now = __atomic_load_n(&joins->bpf->bss->lost, __ATOMIC_RELAXED);
    *lost = now != joins->lost;
    joins->lost = now;
    if (rc < 0)
        return failed(rc, "cannot read the ring of new processes", err);
    return joins->rc;
}

void trg_joins_close(struct trg_joins *joins)
{
    if (!joins)
        return;
    ring_buffer__free(joins->ring);
    joins_bpf__destroy(joins->bpf);
    free(joins);
}
