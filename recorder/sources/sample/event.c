/* The events of the sample source. */
#include "recorder/perf/event.h"
#include "base/log.h"
#include "recorder/perf/tracefs.h"
#include "recorder/sources/sample/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What perf dumps for DWARF on x86-64: all registers but the segments' (tools/perf/arch/x86). */
static const uint64_t dwarf_registers = 0xff0fff;

static void set_callgraph(struct perf_event_attr *attr, enum rec_callgraph callgraph)
{
    switch (callgraph) {
    case REC_CALLGRAPH_FP:
        break;
    case REC_CALLGRAPH_DWARF:
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = dwarf_registers;
        attr->sample_stack_user = SMP_STACK_BYTES;
        attr->exclude_callchain_user = 1;
        break;
    case REC_CALLGRAPH_LBR:
        attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
        attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
                                   PERF_SAMPLE_BRANCH_NO_CYCLES | PERF_SAMPLE_BRANCH_NO_FLAGS;
        attr->exclude_callchain_user = 1;
        break;
    }
}

static struct perf_event_attr common(const struct rec_source *s, const struct rec_source_config *config)
{
    struct perf_event_attr attr = {
        .size = sizeof(struct perf_event_attr),
        .sample_type = REC_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
        .sample_id_all = 1,
        .write_backward = 1,
        .exclude_hv = 1,
        .inherit = s->per_cpu && config->target->kind != ST_TARGET_ALL && !config->select,
    };

    if (config->select)
        rec_perf_use_monotonic(&attr);
    return attr;
}

static int try_on_self(const struct perf_event_attr *attr)
{
    int fd = rec_perf_event(attr, 0, -1);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? errno : 0;
}

/* The event of cycles that counts on a CPU (PERF_PMU_CAP_EXTENDED_HW_TYPE: the PMU stands above the number).
 */
static void name_pmu(struct perf_event_attr *attr, uint32_t type)
{
    attr->config |= (uint64_t)type << PERF_PMU_TYPE_SHIFT;
}

/* Whether there is one for each kind of core: 0, or why not. An event of a thread goes wherever the thread
 * does, and would count on one kind alone. */
static int try_cycles(const struct rec_source *s, const struct perf_event_attr *attr)
{
    int why = s->cores.n && !s->per_cpu ? EOPNOTSUPP : 0;

    if (!s->cores.n)
        return try_on_self(attr);
    for (size_t i = 0; i < s->cores.n && !why; i++) {
        struct perf_event_attr of_kind = *attr;

        name_pmu(&of_kind, s->cores.at[i].type);
        why = try_on_self(&of_kind);
    }
    return why;
}

/* Counted by hardware and told by an NMI, so also of code that runs with interrupts off. */
static int choose_event(struct rec_source *s, struct st_error *err)
{
    struct smp_attr *samples = &s->kinds[SMP_SAMPLES];
    struct perf_event_attr *attr = &samples->attr;
    const char *what = attr->exclude_kernel ? "sample user code" : "sample user and kernel code";
    int why;

    attr->type = PERF_TYPE_HARDWARE;
    attr->config = PERF_COUNT_HW_CPU_CYCLES;
    samples->name = attr->exclude_kernel ? "cycles:u" : "cycles";
    why = try_cycles(s, attr);
    if (!why)
        return 0;
    if (s->callgraph == REC_CALLGRAPH_LBR && s->cores.n && !s->per_cpu) {
        st_fail(err, ST_ECANNOT,
                "--callgraph lbr: this processor has cores of several kinds, and a ring of a thread has the "
                "events of one");
        return st_hint(err, "--rings cpu");
    }
    if (s->callgraph == REC_CALLGRAPH_LBR) {
        st_fail(err, ST_ECANNOT,
                "--callgraph lbr: this processor keeps no stack of branches, or the kernel "
                "does not offer it");
        return st_hint(err, "--callgraph fp, or dwarf for programs without frame pointers");
    }
    st_log_debug("no hardware cycles (%s): the CPU's clock samples", strerror(why));
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = PERF_COUNT_SW_CPU_CLOCK;
    attr->exclude_idle = 1;
    samples->name = attr->exclude_kernel ? "cpu-clock:u" : "cpu-clock";
    why = try_on_self(attr);
    if (!why)
        return 0;
    errno = why;
    return rec_perf_refused(what, err);
}

/* An event on a tracepoint: what happened stands in the raw data. 0, or why this user may have none. With its
 * period in the sample the kernel would sample each, whatever the period is (kernel/events/core.c,
 * perf_swevent_event). */
static int on_tracepoint(struct smp_attr *kind, const char *name, struct st_error *err)
{
    uint64_t id;
    int rc = rec_tracepoint_id(name, &id, err), why;

    if (rc)
        return rc;
    kind->attr.type = PERF_TYPE_TRACEPOINT;
    kind->attr.config = id;
    kind->attr.sample_period = 1;
    kind->attr.sample_type |= PERF_SAMPLE_RAW;
    kind->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
    why = try_on_self(&kind->attr);
    errno = why;
    if (why)
        return rec_perf_refused(name, err);
    kind->name = name;
    return 0;
}

/* It happens in the kernel, and counts what the group's leader counts: both wait for the same enable. The
 * tracepoint tells also in what state the thread went. */
static void switch_attr(struct rec_source *s, const struct perf_event_attr *base, bool kernel)
{
    struct smp_attr *kind = &s->kinds[SMP_SWITCHES];
    struct st_error why = {0};

    kind->attr = *base;
    kind->attr.exclude_callchain_kernel = !kernel;
    set_callgraph(&kind->attr, s->callgraph == REC_CALLGRAPH_DWARF ? REC_CALLGRAPH_DWARF : REC_CALLGRAPH_FP);
    if (!on_tracepoint(kind, "sched:sched_switch", &why))
        return;
    st_log_debug("no states of threads: %s", why.text);
    kind->attr.type = PERF_TYPE_SOFTWARE;
    kind->attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    kind->attr.sample_period = 1;
    kind->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
    kind->name = "context-switches";
}

static int syscall_attrs(struct rec_source *s, const struct perf_event_attr *base, struct st_error *err)
{
    static const char *const names[] = {"raw_syscalls:sys_enter", "raw_syscalls:sys_exit"};
    int rc = 0;

    for (size_t i = 0; i < 2 && !rc; i++) {
        struct smp_attr *kind = &s->kinds[SMP_ENTRIES + i];

        kind->attr = *base;
        kind->attr.exclude_callchain_kernel = kind->attr.exclude_callchain_user = 1;
        rc = on_tracepoint(kind, names[i], err);
    }
    return rc ? st_prefix(err, "--syscalls: ") : 0;
}

int smp_event_attr(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    const struct perf_event_attr base = common(s, config);
    struct perf_event_attr *attr = &s->kinds[SMP_SAMPLES].attr;
    int rc;

    *attr = base;
    attr->freq = 1;
    attr->sample_freq = s->frequency ? s->frequency : 1000;
    attr->exclude_kernel = !config->kernel;
    attr->disabled = 1;
    attr->enable_on_exec = config->command != 0;
    set_callgraph(attr, s->callgraph);
    rc = choose_event(s, err);
    if (!rc)
        switch_attr(s, &base, config->kernel);
    return rc || !config->syscalls ? rc : syscall_attrs(s, &base, err);
}

static int opening_failed(const struct smp_event *e, struct st_error *err)
{
    char what[64] = "sample every CPU";

    if (errno == ESRCH)
        return 1;
    if (e->tid >= 0)
        snprintf(what, sizeof(what), "sample thread %d", e->tid);
    return rec_perf_refused(what, err);
}

void smp_event_by_program(struct perf_event_attr *attr)
{
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = PERF_COUNT_SW_BPF_OUTPUT;
    attr->sample_period = 1;
}

/* What of it is the target's. */
static int select_records(const struct rec_source *s, const struct smp_event *e, enum smp_kind kind,
                          struct st_error *err)
{
    if (!s->select)
        return 0;
    if (kind == SMP_SAMPLES)
        return trg_select_filter(s->select, e->fd[kind], err);
    return trg_select_set_output(s->select, TRG_SELECT_SWITCH_MARKS, e->cpu, e->fd[kind], err);
}

/* An event of the group. Without that of the switches, where a thread left its CPU is between two samples. */
static int open_member(const struct rec_source *s, struct smp_event *e, enum smp_kind kind,
                       struct st_error *err)
{
    struct perf_event_attr attr = s->kinds[kind].attr;
    uint32_t pmu;
    int rc;

    if (!s->kinds[kind].name)
        return 0;
    if (s->select && kind == SMP_SWITCHES)
        smp_event_by_program(&attr);
    if (s->cores.n && attr.type == PERF_TYPE_HARDWARE) {
        if (!smp_cores_type(&s->cores, e->cpu, &pmu))
            return st_fail(err, ST_EFAIL, "no PMU in " SMP_CORES_FOLDER "/cpu_* counts on CPU %d", e->cpu);
        name_pmu(&attr, pmu);
    }
    e->fd[kind] = rec_perf_event_in_group(&attr, e->tid, e->cpu, kind ? e->fd[SMP_SAMPLES] : -1);
    if (e->fd[kind] >= 0) {
        rc = rec_perf_id(e->fd[kind], &e->id[kind], err);
        return rc ? rc : select_records(s, e, kind, err);
    }
    if (kind != SMP_SWITCHES)
        return opening_failed(e, err);
    st_log_debug("no samples at context switches: %s", strerror(errno));
    return 0;
}

int smp_event_open(const struct rec_source *s, struct smp_event *e, struct st_error *err)
{
    int rc = 0;

    for (int k = 0; k < SMP_OF_THREAD; k++)
        e->fd[k] = -1;
    for (int k = 0; k < SMP_OF_THREAD && !rc; k++)
        rc = open_member(s, e, k, err);
    if (rc)
        smp_event_close(e);
    return rc;
}

int smp_event_join(const struct smp_event *e, int owner, struct st_error *err)
{
    for (int k = 0; k < SMP_OF_THREAD; k++)
        if (e->fd[k] >= 0 && e->fd[k] != owner && ioctl(e->fd[k], PERF_EVENT_IOC_SET_OUTPUT, owner))
            return st_fail_errno(err, ST_EFAIL, "cannot direct the samples of thread %d into a ring", e->tid);
    return 0;
}

int smp_event_switch(const struct smp_event *e, bool on, struct st_error *err)
{
    if (!ioctl(e->fd[SMP_SAMPLES], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) || errno == ESRCH)
        return 0;
    return st_fail_errno(err, ST_EFAIL, "cannot %s sampling thread %d", on ? "start" : "stop", e->tid);
}

void smp_event_close(struct smp_event *e)
{
    for (int k = SMP_OF_THREAD - 1; k >= 0; k--) {
        if (e->fd[k] >= 0)
            close(e->fd[k]);
        e->fd[k] = -1;
    }
}
