/* Opens everything that a recording needs, in the order in which nothing is missed. */
#include "base/log.h"
#include "perfdata/format.h"
#include "recorder/arm/arm.h"
#include "recorder/arm/rlimits.h"
#include "recorder/arm/signals.h"
#include "recorder/arm/urgent.h"
#include "recorder/code/runtimes.h"
#include "recorder/perf/event.h"
#include "recorder/perf/privileges.h"
#include "recorder/snapshot/name.h"
#include "recorder/snapshot/snapshot.h"
#include "recorder/sources/sample/select.h"
#include "recorder/sources/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STALL_RING = 256 * 1024,
    MOST_ADVISED = 16, /* processes */
    LOOK_NS = 1000 * 1000 * 1000,
};

static int add_watch(struct arm *arm, struct rec_watch *watch, int fd,
                     int (*ready)(void *, struct st_error *), struct st_error *err)
{
    if (fd < 0)
        return fd;
    *watch = (struct rec_watch){.fd = fd, .ready = ready, .ctx = arm};
    return rec_loop_add(arm->loop, watch, err);
}

static int open_loop(struct arm *arm, struct st_error *err)
{
    int rc;

    arm->loop = rec_loop_open(err);
    if (arm->loop < 0)
        return arm->loop;
    rc = add_watch(arm, &arm->signals, rec_signals_open(err), arm_on_signal, err);
    if (!rc)
        rc = add_watch(arm, &arm->timeout, rec_timer_open(err), arm_on_timeout, err);
    if (!rc)
        rc = add_watch(arm, &arm->after, rec_timer_open(err), arm_on_after, err);
    if (!rc)
        rc = add_watch(arm, &arm->end.timer, rec_timer_open(err), arm_on_end_timer, err);
    if (!rc)
        rc = add_watch(arm, &arm->unseen, rec_timer_open(err), arm_on_unseen, err);
    if (!rc)
        rc = add_watch(arm, &arm->look, rec_timer_open(err), arm_on_look, err);
    if (!rc)
        rc = add_watch(arm, &arm->limits.timer, rec_timer_open(err), arm_on_limits, err);
    return rc;
}

/* Whether we may look into the process at all: the kernel asks the same of everything that follows. */
static int check_access(const struct st_target *target, struct st_error *err)
{
    for (size_t i = 0; i < target->npids; i++) {
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/maps", target->pids[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            close(fd);
        } else if (errno == EACCES || errno == EPERM) {
            st_fail(err, ST_ECANNOT,
                    "no permission to record process %d: it belongs to another user, or is protected",
                    target->pids[i]);
            return st_hint(err, "run as root, or with CAP_SYS_PTRACE and CAP_PERFMON");
        } else if (errno != ENOENT && errno != ESRCH) {
            return st_fail_errno(err, ST_EFAIL, "cannot read %s", path);
        } else if (!st_target_waits(target)) {
            return st_fail(err, ST_EFAIL, "process %d has ended", target->pids[i]);
        }
    }
    return 0;
}

static int open_target(struct arm *arm, struct st_error *err)
{
    struct st_target *t = &arm->options.target;
    int rc = st_target_resolve(t, err);

    if (!rc)
        rc = check_access(t, err);
    if (!rc && t->kind == ST_TARGET_COMMAND)
        rc = rec_launch_open(&arm->launch, t->argv, err);
    if (!rc && arm->launch.pid)
        rc = add_watch(arm, &arm->launched, arm->launch.result, arm_on_launched, err);
    return rc;
}

static struct rec_source_config source_config(const struct arm *arm)
{
    return (struct rec_source_config){
        .target = &arm->options.target,
        .command = arm->launch.pid,
        .ring_bytes = arm->options.ring_bytes,
        .ring_total = arm->options.ring_total,
        .kernel = arm->options.kernel < 0 ? geteuid() == 0 : arm->options.kernel,
        .kernel_demanded = arm->options.kernel == 1,
        .rings = arm->options.rings,
        .freeze_on_trigger = arm->options.triggers && !arm->options.after,
        .once = arm->options.snapshots == 1,
        .frequency = (unsigned)arm->options.frequency,
        .callgraph = arm->options.callgraph,
        .every_switch = arm->options.every_switch,
        .select = arm->select,
        .syscalls = arm->options.syscalls,
    };
}

static int choose_source(struct arm *arm, struct st_error *err)
{
    struct rec_source_config config = source_config(arm);

    return rec_source_choose(arm->options.source, &config, &arm->ops, err);
}

static int open_select(struct arm *arm, struct st_error *err)
{
    struct rec_source_config config = source_config(arm);

    if (!arm->ops->selects || !arm->ops->selects(&config))
        return 0;
    return rec_select_open(&arm->options.target, &arm->select, err);
}

/* With a ring of a given size the side-band is not to be the larger part of a snapshot. What there is of
 * threads and mappings is kept in any case. */
static struct rec_store_bounds store_bounds(const struct arm *arm)
{
    const uint64_t least = 1 << 20, most = 16 << 20;
    uint64_t bytes = arm->options.ring_bytes;

    if (!bytes || bytes > most)
        return (struct rec_store_bounds){0};
    bytes = bytes < least ? least : bytes;
    return (struct rec_store_bounds){.events = bytes, .samples = bytes};
}

static int open_sideband(struct arm *arm, struct st_error *err)
{
    const struct rec_source_config source = source_config(arm);
    bool inherits = arm->ops->inherits && arm->ops->inherits(&source);
    struct rec_sideband_config config = {
        .target = &arm->options.target,
        .command = arm->launch.pid,
        .switches = !arm->ops->own_switches,
        .kernel = source.kernel && !arm->ops->own_switches,
        .select = arm->select,
        .wake_at_once = arm->ops->thread_started && !inherits,
    };
    const struct rec_store_bounds bounds = store_bounds(arm);
    int rc = rec_store_open(&bounds, &arm->store, err);

    if (!rc)
        rc = rec_clock_open_as(&arm->clock, arm->select, err);
    if (!rc)
        rc = rec_sideband_open(&config, &arm->clock, arm->store, &arm->sideband, err);
    return rc ? rc : rec_sideband_watch(arm->sideband, arm->loop, err);
}

static int tell_source(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct arm *arm = ctx;

    return arm->ops->thread_started(arm->source, pid, tid, err);
}

static bool records_kernel(const struct arm *arm)
{
    struct perf_event_attr attr = {0};
    uint64_t priv[PD_PT_PRIV_MAX];
    const char *name;

    arm->ops->trace_event(arm->source, &attr, &name, priv, PD_PT_PRIV_MAX);
    return !attr.exclude_kernel;
}

/* --kernel by itself is a wish; said aloud it is a demand. */
static int check_kernel(struct arm *arm, struct st_error *err)
{
    if (arm->options.kernel != 1 || records_kernel(arm))
        return 0;
    return st_fail(err, ST_ECANNOT, "--kernel: source %s records user code only", arm->ops->name);
}

static int open_source(struct arm *arm, struct st_error *err)
{
    struct rec_source_config config = source_config(arm);
    int fd, rc = arm->ops->open(&config, &arm->source, err);

    if (!rc)
        rc = check_kernel(arm, err);
    if (rc)
        return rc;
    if (arm->ops->thread_started)
        rec_sideband_on_thread(arm->sideband, tell_source, arm);
    fd = arm->ops->poll_fd(arm->source);
    return fd < 0 ? 0 : add_watch(arm, &arm->source_ready, fd, arm_on_source, err);
}

static int set_output(struct arm *arm, struct trg_set *set, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; set && !rc && i < arm->stalls.events.n; i++)
        rc = trg_set_output(set, arm->stalls.rings.at[i].cpu, arm->stalls.events.at[i].fd, err);
    return rc;
}

static int open_mark_rings(struct arm *arm, const struct perf_event_attr *attr, struct st_error *err)
{
    int rc = rec_mark_rings_open(&arm->marks, attr, &arm->stalls, err);

    for (size_t i = 0; !rc && i < arm->marks.each.n; i++)
        rc = trg_set_output(arm->options.marks, arm->marks.each.at[i].ring.cpu, arm->marks.each.at[i].ring.fd,
                            err);
    return rc;
}

/* The rings for what triggers and marks write. */
static int open_outputs(struct arm *arm, struct st_error *err)
{
    struct perf_event_attr attr;
    rec_cpu_list cpus = {0};
    int rc = rec_cpus_online(&cpus, err);

    rec_snapshot_stall_attr(&attr);
    if (arm->select)
        rec_perf_use_monotonic(&attr);
    if (!rc)
        rc = rec_group_open(&arm->stalls, &attr, &cpus, STALL_RING, STALL_RING / 2, err);
    if (!rc)
        rc = rec_group_add(&arm->stalls, -1, "take the records of triggers on every CPU", err);
    if (!rc)
        rc = set_output(arm, arm->options.triggers, err);
    if (!rc && arm->options.marks)
        rc = open_mark_rings(arm, &attr, err);
    st_vec_free(&cpus);
    return rc ? rc : rec_group_watch(&arm->stalls, arm->loop, arm_on_stalls, arm, err);
}

static int open_triggers(struct arm *arm, struct st_error *err)
{
    struct trg_config config = {
        .target = &arm->options.target,
        .command = arm->launch.pid,
        .warm_up_ns = UINT64_MAX,
        .by_thread = arm->options.prometheus != NULL,
        .early = arm->ops->stops_in_kernel && arm->ops->stops_in_kernel(arm->source),
    };
    int rc = arm->options.triggers ? trg_open(arm->options.triggers, &config, err) : 0;

    config.marks = true;
    config.warm_up_ns = 0;
    if (!rc && arm->options.marks)
        rc = trg_open(arm->options.marks, &config, err);
    return rc ? rc : open_outputs(arm, err);
}

static int open_outside(struct arm *arm, struct st_error *err)
{
    const struct arm_options *o = &arm->options;
    struct rec_jobs_config jobs = {.folder = arm->folder,
                                   .decode = !o->no_decode,
                                   .actions = o->then.each.at ? o->then.each.at + o->then.before : NULL,
                                   .nactions = o->then.each.n - o->then.before};
    const pid_t *pids = arm->launch.pid ? &arm->launch.pid : o->target.pids;
    size_t npids = arm->launch.pid ? 1 : o->target.npids;
    int rc = rec_jobs_open(arm->loop, &jobs, &arm->jobs, err);

    if (!rc)
        rc = rec_clerk_open(arm->loop, arm_on_written, arm, &arm->clerk, err);
    if (!rc)
        rc = rec_alive_open(&arm->alive, arm->loop, &o->target, arm->launch.pid, arm_on_ended, arm, err);
    if (!rc)
        rc = arm_open_joins(arm, err);
    if (rc)
        return rc;
    /* Without it everything but `snap` works. */
    if (rec_control_open(arm->loop, pids, npids, arm_on_snap, arm, &arm->control, err))
        st_log_warn("`stalltrap snap` will not find this recording: %s", err->text);
    return 0;
}

/* Recording first, then what fires, then the command; nothing fires before the rest is ready for it. But a
 * trigger that is attached changes the kernel's code: kernel code is recorded only when all of that is done.
 */
static int start(struct arm *arm, struct st_error *err)
{
    bool early = arm->options.triggers && records_kernel(arm);
    int rc = early ? trg_start(arm->options.triggers, err) : 0;

    if (!rc && arm->options.marks)
        rc = trg_start(arm->options.marks, err);

    if (!rc)
        rc = arm->ops->start(arm->source, err);
    if (!rc && arm->options.triggers && !early)
        rc = trg_start(arm->options.triggers, err);
    if (!rc)
        rc = rec_clock_now(&arm->clock, &arm->armed, err);
    if (!rc && arm->options.prometheus)
        rc = rec_metrics_open(arm->options.prometheus, arm->options.triggers, &arm->traps, arm->loop,
                              REC_METRICS_EVERY, &arm->metrics, err);
    if (!rc && arm->options.triggers) {
        arm_load_kallsyms(arm);
        rc = arm_limits_start(arm, err);
    }
    if (!rc && arm->launch.pid)
        rc = rec_launch_go(&arm->launch, err);
    if (!rc && arm->options.triggers)
        rc = rec_timer_set(arm->unseen.fd, REC_UNSEEN_NS, REC_UNSEEN_NS, err);
    if (!rc && arm->options.timeout)
        rc = rec_timer_set(arm->timeout.fd, arm->options.timeout, 0, err);
    if (!rc && arm->ops->look && arm->ops->look(arm->source))
        rc = rec_timer_set(arm->look.fd, LOOK_NS, LOOK_NS, err);
    if (!rc)
        arm_moves(arm, ARM_LIVE);
    /* Those that came since the target was looked up. */
    return rc || !st_target_waits(&arm->options.target) ? rc : rec_joins_look(&arm->joins, err);
}

static void list_triggers(const struct arm *arm, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < trg_count(arm->options.triggers) && at < size; i++) {
        const char *hook = trg_hook(arm->options.triggers, i);

        at += (size_t)snprintf(text + at, size - at, "%s%s%s%s%s", i ? " or " : "",
                               trg_text(arm->options.triggers, i), hook ? " (by " : "", hook ? hook : "",
                               hook ? ")" : "");
    }
}

/* Said now and kept in the snapshots: a stall may be of the source's making. */
static int warn_of_distortion(struct arm *arm, struct st_error *err)
{
    if (!arm->ops->distorts || !arm->options.triggers || !trg_measures(arm->options.triggers))
        return 0;
    st_log_warn("%s", arm->ops->distorts);
    return st_vec_push(&arm->warnings, arm->ops->distorts) ? st_nomem(err, "the warnings") : 0;
}

static void advise(const struct arm *arm)
{
    const struct st_target *target = &arm->options.target;
    char text[512];

    for (size_t i = 0; i < target->npids && i < MOST_ADVISED; i++)
        if (rec_runtime_advice(target->pids[i], text, sizeof(text)))
            st_log_info("%s", text);
}

static int announce(struct arm *arm, struct st_error *err)
{
    const struct st_target *target = &arm->options.target;
    char waiting[512], limits[192], who[1024];
    int fd = (int)arm->options.ready_fd;

    arm->ops->describe(arm->source, arm->source_text, sizeof(arm->source_text));
    arm_joins_describe(arm, who, sizeof(who));
    snprintf(waiting, sizeof(waiting), "%s",
             target->kind == ST_TARGET_COMM     ? "Ctrl-C"
             : target->kind == ST_TARGET_CGROUP ? "Ctrl-C or the cgroup's removal"
                                                : "Ctrl-C or the target's end");
    if (arm->options.triggers)
        list_triggers(arm, waiting, sizeof(waiting));
    arm_limits_describe(arm, limits, sizeof(limits));
    advise(arm);
    st_log_info("armed: %s%s, %s; %swaiting for %s%s%s", arm->ops->name,
                rec_source_instead(arm->options.source, arm->ops), arm->source_text, who, waiting,
                arm->options.triggers ? " (Ctrl-C: snapshot now)" : "", limits);
    if (fd < 0)
        return 0;
    if (write(fd, "armed\n", 6) != 6)
        return st_fail_errno(err, ST_EFAIL, "--ready-fd %d", fd);
    close(fd);
    return 0;
}

static int open_all(struct arm *arm, struct st_error *err)
{
    int rc = open_loop(arm, err);

    if (!rc)
        rc = open_target(arm, err);
    if (!rc)
        rc = choose_source(arm, err);
    if (!rc)
        rc = open_select(arm, err);
    if (!rc)
        rc = open_sideband(arm, err);
    if (!rc)
        rc = open_source(arm, err);
    if (!rc && (arm->options.triggers || arm->options.marks))
        rc = open_triggers(arm, err);
    if (!rc)
        rc = warn_of_distortion(arm, err);
    if (!rc)
        rc = open_outside(arm, err);
    return rc ? rc : start(arm, err);
}

/* A process may end at any moment while it is being armed; what then failed first is of no interest. */
static bool has_ended(const struct st_target *target)
{
    if (st_target_waits(target))
        return false;
    for (size_t i = 0; i < target->npids; i++)
        if (!kill(target->pids[i], 0) || errno != ESRCH)
            return false;
    return target->npids > 0;
}

int arm_open(struct arm *arm, struct st_error *err)
{
    bool was_there = !has_ended(&arm->options.target);
    int rc = 0;

    arm->folder = rec_snapshot_folder(arm->options.prefix, err);
    if (arm->folder < 0)
        rc = arm->folder;
    rec_limits_raise();
    rec_urgent_memory();
    arm_limits_set(arm);
    if (!rc)
        rc = open_all(arm, err);
    if (rc == ST_EFAIL && was_there && has_ended(&arm->options.target))
        st_prefix(err, "the target ended while it was being armed: ");
    if (rc)
        return rc;
    rec_urgent_begin();
    return announce(arm, err);
}

static void close_watch(struct arm *arm, struct rec_watch *watch, bool owned)
{
    if (watch->fd < 0)
        return;
    rec_loop_remove(arm->loop, watch);
    if (owned)
        close(watch->fd);
    watch->fd = -1;
}

void arm_detach(struct arm *arm)
{
    rec_urgent_end();
    arm_moves(arm, ARM_QUIT);
    close_watch(arm, &arm->timeout, true);
    close_watch(arm, &arm->after, true);
    close_watch(arm, &arm->end.timer, true);
    close_watch(arm, &arm->unseen, true);
    close_watch(arm, &arm->look, true);
    close_watch(arm, &arm->limits.timer, true);
    close_watch(arm, &arm->source_ready, false);
    close_watch(arm, &arm->launched, false);
    rec_joins_close(&arm->joins);
    rec_alive_close(&arm->alive);
    if (arm->source)
        arm->ops->close(arm->source);
    arm->source = NULL;
    rec_mark_rings_close(&arm->marks);
    rec_group_close(&arm->stalls, arm->loop);
    rec_sideband_close(arm->sideband, arm->loop);
    arm->sideband = NULL;
    trg_select_close(arm->select);
    arm->select = NULL;
}

void arm_hang_up(struct arm *arm)
{
    rec_control_close(arm->control);
    arm->control = NULL;
}

void arm_close(struct arm *arm)
{
    arm_detach(arm);
    arm_hang_up(arm);
    rec_clerk_close(arm->clerk);
    free(arm->last_data);
    free(arm->last_db);
    arm_forget_open(arm);
    rec_action_stop(&arm->before);
    rec_capture_free(&arm->capture);
    rec_metrics_close(arm->metrics);
    rec_jobs_close(arm->jobs);
    rec_launch_close(&arm->launch);
    rec_clock_close(&arm->clock);
    rec_store_close(arm->store);
    rec_kallsyms_close(arm->kallsyms);
    st_vec_free(&arm->away);
    st_vec_free(&arm->warnings);
    st_vec_free(&arm->pauses);
    for (size_t i = 0; i < arm->incomplete.n; i++)
        free(arm->incomplete.at[i]);
    st_vec_free(&arm->incomplete);
    close_watch(arm, &arm->signals, true);
    if (arm->loop >= 0)
        close(arm->loop);
    if (arm->folder >= 0)
        close(arm->folder);
    arm_options_free(&arm->options);
}
