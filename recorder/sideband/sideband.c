/* The side-band: dummy perf events on the target's threads. */
#include "base/log.h"
#include "base/target_threads.h"
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"
#include "recorder/sideband/sideband_impl.h"
#include "recorder/sideband/synth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STATE_RING = 64 * 1024,
    SWITCH_RING = 256 * 1024,
    MACHINE_RING = 1024 * 1024, /* of either, when every process writes into it */
    SELECT_STATE = 128 * 1024,  /* of the state, when every process writes into it and the target's is kept */
    WAITING_RING = 4096,        /* says that context switches wait */
};

struct switch_record {
    struct perf_event_header header;

    struct rec_trailer trailer;
};

struct lost_record {
    struct rec_lost_record lost;

    struct rec_trailer trailer;
};

/* As the kernel would write it for an event on the thread (PERF_RECORD_SWITCH). */
static int add_switch(struct rec_sideband *sb, struct rec_trailer trailer, uint16_t misc,
                      struct st_error *err)
{
    const struct switch_record r = {
        .header = {.type = PERF_RECORD_SWITCH, .misc = misc, .size = sizeof(r)},
        .trailer = trailer,
    };

    return trailer.tid ? rec_store_add(sb->store, &r.header, trailer.time, err) : 0;
}

/* `cpu`: the CPU and the event's id. */
static int take_switch(struct rec_sideband *sb, const struct select_switch *s, const struct rec_trailer *cpu,
                       struct st_error *err)
{
    struct rec_trailer out = *cpu, in = *cpu;
    uint16_t misc = PERF_RECORD_MISC_SWITCH_OUT;
    int rc;

    rec_waits_take(sb->waits, s);
    out.time = in.time = s->time;
    out.pid = s->prev_pid;
    out.tid = s->prev_tid;
    in.pid = s->next_pid;
    in.tid = s->next_tid;
    if (s->preempt)
        misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    rc = add_switch(sb, out, misc, err);
    return rc ? rc : add_switch(sb, in, 0, err);
}

/* As the kernel does where a ring was full. */
static int add_lost(struct rec_sideband *sb, uint64_t lost, struct rec_trailer trailer, struct st_error *err)
{
    const struct lost_record r = {
        .lost = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(r)}, .id = trailer.id, .lost = lost},
        .trailer = trailer,
    };

    return rec_store_add(sb->store, &r.lost.header, trailer.time, err);
}

static int take_switches_of(struct rec_sideband *sb, struct rec_trailer cpu, struct st_error *err)
{
    struct trg_select_switches list = trg_select_take(sb->config.select, (int)cpu.cpu);
    int rc = 0;

    if (list.lost && list.n) {
        cpu.time = list.at[0].time;
        rc = add_lost(sb, list.lost, cpu, err);
    }
    for (size_t i = 0; !rc && i < list.n; i++)
        rc = take_switch(sb, &list.at[i], &cpu, err);
    return rc;
}

static int take_switches(struct rec_sideband *sb, struct st_error *err)
{
    const struct rec_group *group = &sb->groups[REC_SIDEBAND_SWITCHES];
    int rc = 0;

    for (size_t i = 0; !rc && sb->config.switches && i < group->events.n; i++)
        rc = take_switches_of(
            sb, (struct rec_trailer){.cpu = (uint32_t)group->rings.at[i].cpu, .id = group->events.at[i].id},
            err);
    return rc;
}

/* Whether the record is of the target. Negative: out of memory. */
static int is_ours(struct rec_sideband *sb, const struct perf_event_header *record)
{
    const struct rec_task_record *task = (const struct rec_task_record *)record;

    if (sb->config.select && record->type == PERF_RECORD_FORK &&
        rec_pid_set_has(&sb->joining, (pid_t)task->pid))
        return 1; /* by a stranger, before it came */
    if (sb->config.select)
        return rec_pid_set_takes(&sb->pids, record);
    if (!st_target_waits(sb->config.target))
        return 1;
    if (record->type == PERF_RECORD_FORK && rec_pid_set_add(&sb->pids, (pid_t)task->pid))
        return -1;
    if (record->type == PERF_RECORD_EXIT && task->pid == task->tid)
        rec_pid_set_remove(&sb->pids, (pid_t)task->pid);
    return 1;
}

static int store(struct rec_sideband *sb, const struct perf_event_header *record, struct st_error *err)
{
    const struct rec_task_record *task = (const struct rec_task_record *)record;
    int rc = rec_store_add(sb->store, record, rec_record_time(record), err);

    if (rc || record->type != PERF_RECORD_FORK)
        return rc;
    if (sb->attaching && st_vec_push(&sb->born, (struct born){(pid_t)task->pid, (pid_t)task->tid}))
        return st_nomem(err, "the list of threads");
    return sb->on_thread ? sb->on_thread(sb->on_thread_ctx, (pid_t)task->pid, (pid_t)task->tid, err) : 0;
}

static int take_record(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    struct rec_sideband *sb = ctx;
    int rc;

    if (sb->config.select && record->type == PERF_RECORD_SAMPLE)
        return 0; /* context switches wait */
    rc = is_ours(sb, record);
    if (rc < 0)
        return st_nomem(err, "the list of processes");
    return rc ? store(sb, record, err) : rec_strangers_keep(&sb->strangers, record, err);
}

/* Whether it is of the target after all. What is known meanwhile is newer: nothing is forgotten for it. */
static int take_stranger(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    struct rec_sideband *sb = ctx;
    const struct rec_task_record *task = (const struct rec_task_record *)record;
    bool fork = record->type == PERF_RECORD_FORK && task->pid != task->ppid;
    pid_t by = (pid_t)(fork ? task->ppid : task->pid); /* where FORK, EXIT, COMM, MMAP and MMAP2 have it */
    int rc;

    if (!rec_pid_set_has(&sb->pids, by) && !(fork && rec_pid_set_has(&sb->joining, (pid_t)task->pid)))
        return 0;
    if (fork && rec_pid_set_add(&sb->pids, (pid_t)task->pid))
        return st_nomem(err, "the list of processes");
    rc = store(sb, record, err);
    return rc ? rc : 1;
}

int rec_sideband_drain(struct rec_sideband *sb, struct st_error *err)
{
    int rc = 0;

    for (int i = 0; !rc && i < REC_SIDEBAND_GROUPS; i++)
        rc = rec_group_drain(&sb->groups[i], take_record, sb, err);
    if (!rc)
        rc = rec_strangers_review(&sb->strangers, take_stranger, sb, err);
    return rc || !sb->config.select ? rc : take_switches(sb, err);
}

/* Kernels before 5.12 know no build ids in MMAP2. */
static void drop_unknown_fields(struct perf_event_attr *attr)
{
    int fd = rec_perf_event(attr, 0, -1);

    if (fd >= 0)
        close(fd);
    else if (errno == EINVAL)
        attr->build_id = 0;
}

/* What the program writes is in the clock of BPF programs: so is all else. */
static void set_clock(const struct rec_sideband *sb, struct perf_event_attr *attr)
{
    if (sb->config.select)
        rec_perf_use_monotonic(attr);
}

/* Code of the kernel changes for all: only events of every CPU tell of it. They are not worth failing for. */
static void open_kernel(struct rec_sideband *sb, const rec_cpu_list *cpus)
{
    struct rec_group *group = &sb->groups[REC_SIDEBAND_KERNEL];
    struct perf_event_attr attr;
    struct st_error err = {0};

    rec_perf_dummy(&attr);
    set_clock(sb, &attr);
    /* Not ksymbol: the code of BPF programs is in the snapshot's kcore and kallsyms, and perf drops the kcore
     * mapping that holds an address when a record says that the symbol there went. */
    attr.text_poke = 1;
    if (rec_group_open(group, &attr, cpus, STATE_RING, STATE_RING / 2, &err) ||
        rec_group_add(group, -1, "watch the kernel's code", &err)) {
        rec_group_close(group, -1);
        st_log_debug("changes of the kernel's code will not be seen: %s", err.text);
    }
}

/* A record when many context switches wait. */
static void select_attr(struct perf_event_attr *attr)
{
    rec_perf_dummy(attr);
    attr->config = PERF_COUNT_SW_BPF_OUTPUT;
    attr->sample_period = 1;
    attr->sample_type |= PERF_SAMPLE_RAW;
}

static int set_outputs(struct rec_sideband *sb, struct st_error *err)
{
    const struct rec_group *group = &sb->groups[REC_SIDEBAND_SWITCHES];
    int rc = 0;

    for (size_t i = 0; !rc && sb->config.switches && i < group->events.n; i++)
        rc = trg_select_set_output(sb->config.select, TRG_SELECT_WAITING, group->rings.at[i].cpu,
                                   group->events.at[i].fd, err);
    return rc;
}

static size_t state_ring_size(const struct rec_sideband *sb)
{
    if (sb->config.target->kind == ST_TARGET_ALL)
        return MACHINE_RING;
    return sb->config.select ? SELECT_STATE : STATE_RING;
}

static int open_state(struct rec_sideband *sb, const rec_cpu_list *cpus, struct st_error *err)
{
    struct perf_event_attr attr;
    size_t ring = state_ring_size(sb);

    rec_perf_dummy(&attr);
    set_clock(sb, &attr);
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.build_id = 1;
    drop_unknown_fields(&attr);
    attr.inherit = !sb->config.select;
    return rec_group_open(&sb->groups[REC_SIDEBAND_STATE], &attr, cpus, ring,
                          sb->config.wake_at_once ? 1 : ring / 2, err);
}

static int open_switches(struct rec_sideband *sb, const rec_cpu_list *cpus, struct st_error *err)
{
    struct perf_event_attr attr;
    size_t ring = sb->config.select                          ? WAITING_RING
                  : sb->config.target->kind == ST_TARGET_ALL ? MACHINE_RING
                                                             : SWITCH_RING;

    rec_perf_dummy(&attr);
    attr.context_switch = 1;
    attr.inherit = 1;
    if (sb->config.select)
        select_attr(&attr);
    set_clock(sb, &attr);
    return rec_group_open(&sb->groups[REC_SIDEBAND_SWITCHES], &attr, cpus, ring,
                          sb->config.select ? 1 : ring / 2, err);
}

static int open_groups(struct rec_sideband *sb, struct st_error *err)
{
    rec_cpu_list cpus = {0};
    int rc = rec_cpus_online(&cpus, err);

    if (!rc)
        rc = open_state(sb, &cpus, err);
    if (!rc && sb->config.switches)
        rc = open_switches(sb, &cpus, err);
    if (!rc && sb->config.kernel)
        open_kernel(sb, &cpus);
    st_vec_free(&cpus);
    return rc;
}

static int attach(struct rec_sideband *sb, pid_t tid, struct st_error *err)
{
    char what[48] = "watch every CPU";
    int rc = 0;

    if (tid >= 0)
        snprintf(what, sizeof(what), "watch thread %d", tid);
    for (int i = 0; !rc && i < REC_SIDEBAND_KERNEL; i++)
        rc = rec_group_add(&sb->groups[i], tid, what, err);
    if (!rc && st_vec_push(&sb->attached, tid))
        rc = st_nomem(err, "the list of threads");
    return rc;
}

static bool is_covered(const struct rec_sideband *sb, pid_t tid)
{
    for (size_t i = 0; i < sb->attached.n; i++)
        if (sb->attached.at[i] == tid)
            return true;
    for (size_t i = 0; i < sb->born.n; i++)
        if (sb->born.at[i].tid == tid)
            return true;
    return false;
}

/* Of those that were born before this listing, the records tell who has inherited the events. */
int sideband_attach_thread(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct sideband_walk *w = ctx;
    int rc = 0;

    if (w->pid != pid || w->drained != w->rounds)
        rc = rec_sideband_drain(w->sb, err);
    w->pid = pid;
    w->drained = w->rounds;
    if (rc || is_covered(w->sb, tid))
        return rc;
    rc = attach(w->sb, tid, err);
    return rc ? rc : 1;
}

/* A thread that was born after its parent got the event, and listed before its FORK record was read, has
 * events twice: the inherited ones stay. */
int sideband_drop_doubles(struct rec_sideband *sb, struct st_error *err)
{
    int rc = rec_sideband_drain(sb, err);

    for (size_t i = 0; !rc && i < sb->born.n; i++)
        for (int g = 0; g < REC_SIDEBAND_KERNEL; g++)
            rec_group_remove(&sb->groups[g], sb->born.at[i].tid);
    return rc;
}

static int know_target(struct rec_sideband *sb, struct st_error *err)
{
    const struct st_target *target = sb->config.target;
    int rc = 0;

    for (size_t i = 0; !rc && i < target->npids; i++)
        rc = rec_pid_set_add(&sb->pids, target->pids[i]) ? st_nomem(err, "the list of processes") : 0;
    return rc;
}

/* All events are CPU-wide. */
static int attach_cpus(struct rec_sideband *sb, struct st_error *err)
{
    int rc;

    sb->attaching = true;
    rc = attach(sb, -1, err);
    if (!rc)
        rc = set_outputs(sb, err);
    if (!rc)
        rc = rec_sideband_drain(sb, err);
    sb->attaching = false;
    return rc;
}

static int attach_target(struct rec_sideband *sb, struct st_error *err)
{
    const struct st_target *target = sb->config.target;
    struct sideband_walk walk = {.sb = sb};
    int rc;

    if (target->kind == ST_TARGET_ALL)
        return attach(sb, -1, err);
    rc = sb->config.select || st_target_waits(target) ? know_target(sb, err) : 0;
    if (rc || sb->config.select)
        return rc ? rc : attach_cpus(sb, err);
    sb->attaching = true;
    rc = rec_each_thread(target, sb->config.command, sideband_attach_thread, &walk, &walk.rounds, err);
    if (!rc)
        rc = sideband_drop_doubles(sb, err);
    sb->attaching = false;
    if (!rc && !sb->groups[REC_SIDEBAND_STATE].events.n && !st_target_waits(target))
        rc = st_fail(err, ST_EFAIL, "the target ended before it could be watched");
    return rc;
}

/* The event that made-up records claim to come from. */
uint64_t sideband_state_id(const struct rec_sideband *sb)
{
    const struct rec_group *group = &sb->groups[REC_SIDEBAND_STATE];

    return group->events.n ? group->events.at[0].id : 0;
}

/* Processes that were forked off before their parent was described would know nothing of its mappings. */
int sideband_describe_born(struct rec_sideband *sb, struct st_confined *child, uint64_t now,
                           struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < sb->born.n; i++)
        if (sb->born.at[i].pid == sb->born.at[i].tid)
            rc = rec_synth_process(sb->store, child, sb->born.at[i].pid, now, sideband_state_id(sb), err);
    st_vec_free(&sb->born);
    return rc;
}

static int describe_processes(struct rec_sideband *sb, struct st_confined *child, struct st_error *err)
{
    const struct st_target *target = sb->config.target;
    uint64_t id = sideband_state_id(sb);
    uint64_t now;
    int rc = rec_clock_now(sb->clock, &now, err);

    if (!rc && target->kind == ST_TARGET_ALL)
        return rec_synth_all(sb->store, child, now, id, err);
    if (!rc && sb->config.command)
        rc = rec_synth_process(sb->store, child, sb->config.command, now, id, err);
    for (size_t i = 0; !rc && i < target->npids; i++)
        rc = rec_synth_process(sb->store, child, target->pids[i], now, id, err);
    return rc ? rc : sideband_describe_born(sb, child, now, err);
}

static int describe_present(struct rec_sideband *sb, struct st_error *err)
{
    struct st_confined child = {0};
    int rc = describe_processes(sb, &child, err);

    st_confined_close(&child);
    return rc;
}

int rec_sideband_open(const struct rec_sideband_config *config, struct rec_clock *clock,
                      struct rec_store *store, struct rec_sideband **sideband, struct st_error *err)
{
    struct rec_sideband *sb = calloc(1, sizeof(*sb));
    int rc;

    if (!sb)
        return st_nomem(err, "the side-band");
    sb->config = *config;
    sb->clock = clock;
    sb->store = store;
    rc = config->select ? rec_waits_open(&sb->waits, err) : 0;
    if (!rc)
        rc = open_groups(sb, err);
    if (!rc)
        rc = attach_target(sb, err);
    if (!rc)
        rc = describe_present(sb, err);
    if (rc) {
        rec_sideband_close(sb, -1);
        return rc;
    }
    *sideband = sb;
    return 0;
}

bool rec_sideband_knows(const struct rec_sideband *sb, pid_t pid)
{
    return rec_pid_set_has(&sb->pids, pid);
}

const rec_pid_set *rec_sideband_pids(const struct rec_sideband *sb)
{
    return &sb->pids;
}

int rec_sideband_tell_waits(struct rec_sideband *sb, uint64_t id, pid_t tid, struct st_error *err)
{
    return sb->waits ? rec_waits_tell(sb->waits, id, tid, sb->store, err) : 0;
}

void rec_sideband_on_thread(struct rec_sideband *sb, rec_thread_fn *fn, void *ctx)
{
    sb->on_thread = fn;
    sb->on_thread_ctx = ctx;
}

static int drain_ready(void *ctx, struct st_error *err)
{
    return rec_sideband_drain(ctx, err);
}

int rec_sideband_watch(struct rec_sideband *sb, int loop, struct st_error *err)
{
    int rc = 0;

    for (int i = 0; !rc && i < REC_SIDEBAND_GROUPS; i++)
        rc = rec_group_watch(&sb->groups[i], loop, drain_ready, sb, err);
    return rc;
}

const struct rec_group *rec_sideband_group(const struct rec_sideband *sb, enum rec_sideband_group which)
{
    return &sb->groups[which];
}

void rec_sideband_close(struct rec_sideband *sb, int loop)
{
    if (!sb)
        return;
    for (int i = 0; i < REC_SIDEBAND_GROUPS; i++)
        rec_group_close(&sb->groups[i], loop);
    st_vec_free(&sb->attached);
    st_vec_free(&sb->born);
    st_vec_free(&sb->pids);
    st_vec_free(&sb->joining);
    rec_waits_close(sb->waits);
    rec_strangers_free(&sb->strangers);
    free(sb);
}
