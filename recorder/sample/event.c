/* The events of the sample source. */
#include "base/log.h"
#include "recorder/perf_event.h"
#include "recorder/sample/state.h"

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
    return (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .sample_type = REC_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
        .sample_id_all = 1,
        .write_backward = 1,
        .exclude_hv = 1,
        .inherit = s->per_cpu && config->target->kind != ST_TARGET_ALL,
    };
}

static int try_on_self(const struct perf_event_attr *attr)
{
    int fd = rec_perf_event(attr, 0, -1);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? errno : 0;
}

/* Counted by hardware and told by an NMI, so also of code that runs with interrupts off. */
static int choose_event(struct rec_source *s, struct st_error *err)
{
    const char *what = s->attr.exclude_kernel ? "sample user code" : "sample user and kernel code";
    int why;

    s->attr.type = PERF_TYPE_HARDWARE;
    s->attr.config = PERF_COUNT_HW_CPU_CYCLES;
    s->event_name = s->attr.exclude_kernel ? "cycles:u" : "cycles";
    why = try_on_self(&s->attr);
    if (!why)
        return 0;
    if (s->callgraph == REC_CALLGRAPH_LBR) {
        st_fail(err, ST_ECANNOT,
                "--callgraph lbr: this processor keeps no stack of branches, or the kernel "
                "does not offer it");
        return st_hint(err, "--callgraph fp, or dwarf for programs without frame pointers");
    }
    st_log_debug("no hardware cycles (%s): the CPU's clock samples", strerror(why));
    s->attr.type = PERF_TYPE_SOFTWARE;
    s->attr.config = PERF_COUNT_SW_CPU_CLOCK;
    s->attr.exclude_idle = 1;
    s->event_name = s->attr.exclude_kernel ? "cpu-clock:u" : "cpu-clock";
    why = try_on_self(&s->attr);
    if (!why)
        return 0;
    errno = why;
    return rec_perf_refused(what, err);
}

int smp_event_attr(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    s->attr = s->switch_attr = common(s, config);
    s->attr.freq = 1;
    s->attr.sample_freq = s->frequency ? s->frequency : 1000;
    s->attr.exclude_kernel = !config->kernel;
    s->attr.disabled = 1;
    s->attr.enable_on_exec = config->command != 0;
    set_callgraph(&s->attr, s->callgraph);
    /* It happens in the kernel, and counts what the group's leader counts: both wait for the same enable. */
    s->switch_attr.type = PERF_TYPE_SOFTWARE;
    s->switch_attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    s->switch_attr.sample_period = 1;
    s->switch_attr.exclude_callchain_kernel = !config->kernel;
    s->switch_name = "context-switches";
    set_callgraph(&s->switch_attr,
                  s->callgraph == REC_CALLGRAPH_DWARF ? REC_CALLGRAPH_DWARF : REC_CALLGRAPH_FP);
    return choose_event(s, err);
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

int smp_event_open(const struct rec_source *s, struct smp_event *e, struct st_error *err)
{
    int rc;

    e->switch_fd = -1;
    e->fd = rec_perf_event(&s->attr, e->tid, e->cpu);
    if (e->fd < 0)
        return opening_failed(e, err);
    rc = rec_perf_id(e->fd, &e->id, err);
    if (rc) {
        smp_event_close(e);
        return rc;
    }
    e->switch_fd = rec_perf_event_in_group(&s->switch_attr, e->tid, e->cpu, e->fd);
    if (e->switch_fd < 0) /* without it, where a thread left its CPU is between two samples */
        st_log_debug("no samples at context switches: %s", strerror(errno));
    else
        rc = rec_perf_id(e->switch_fd, &e->switch_id, err);
    if (rc)
        smp_event_close(e);
    return rc;
}

int smp_event_join(const struct smp_event *e, int owner, struct st_error *err)
{
    if ((e->fd == owner || !ioctl(e->fd, PERF_EVENT_IOC_SET_OUTPUT, owner)) &&
        (e->switch_fd < 0 || !ioctl(e->switch_fd, PERF_EVENT_IOC_SET_OUTPUT, owner)))
        return 0;
    return st_fail_errno(err, ST_EFAIL, "cannot direct the samples of thread %d into a ring", e->tid);
}

int smp_event_switch(const struct smp_event *e, bool on, struct st_error *err)
{
    if (!ioctl(e->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) || errno == ESRCH)
        return 0;
    return st_fail_errno(err, ST_EFAIL, "cannot %s sampling thread %d", on ? "start" : "stop", e->tid);
}

void smp_event_close(struct smp_event *e)
{
    if (e->switch_fd >= 0)
        close(e->switch_fd);
    if (e->fd >= 0)
        close(e->fd);
    e->fd = e->switch_fd = -1;
}
