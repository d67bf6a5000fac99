/* offcpu: loads its BPF programs, feeds them their configuration, completes what they cannot see. */
#include "triggers/offcpu.h"
#include "base/log.h"
#include "triggers/places.h"
#include "triggers/privilege.h"
#include "triggers/syscalls.h"
#include "triggers/ustack.h"

#include "triggers/offcpu.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOTS_FEW  32768 /* threads at once, of some processes */
#define SLOTS_MANY 65536 /* of the machine */

struct trg_state {
    struct offcpu_bpf *bpf;

    const struct trg_config *config;
};

/* ---- open ---- */

static void configure_follow(struct offcpu_bpf *bpf, const struct trg_config *config)
{
    switch (config->target->kind) {
    case ST_TARGET_ALL:
        bpf->rodata->follow.mode = FOLLOW_ALL;
        break;
    case ST_TARGET_CGROUP:
        bpf->rodata->follow.mode = FOLLOW_CGROUP;
        break;
    default:
        bpf->rodata->follow.mode = FOLLOW_PIDS;
    }
    bpf->rodata->follow.self = (uint32_t)getpid();
    bpf->rodata->follow.cgroup = config->target->cgroup_id;
    bpf->rodata->follow.newborn = config->target->kind == ST_TARGET_COMMAND;
}

static int configure_places(struct offcpu_bpf *bpf, struct st_error *err)
{
    struct trg_places places;
    int rc = trg_find_places(&places, err);

    if (rc)
        return rc;
    bpf->rodata->preempt_count_place = places.preempt_count;
    bpf->rodata->current_task_place = places.current_task;
    bpf->rodata->make_timers_anywhere = places.nolock;
    bpf->rodata->wake_up_start = places.wake_up;
    bpf->rodata->wake_up_end = places.wake_up_end;
    return 0;
}

static void configure_offcpu(struct offcpu_bpf *bpf, const struct trg_open *how)
{
    const struct offcpu_options *options = how->spec->options;
    struct timespec tick = {0, 0};

    memcpy((void *)bpf->rodata->offcpu.idle, options->idle, sizeof(options->idle));
    memcpy((void *)bpf->rodata->offcpu.idle32, options->idle32, sizeof(options->idle32));
    bpf->rodata->offcpu.states = options->states ? options->states : OFFCPU_ANY;
    bpf->rodata->offcpu.trigger = how->trigger;
    bpf->rodata->offcpu.measure_only = how->config->measure_only;
    bpf->rodata->offcpu.count_idle = options->count_idle;
    bpf->rodata->offcpu.worst = how->spec->worst;
    bpf->rodata->offcpu.early = how->config->early;
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick); /* the kernel's TICK_NSEC */
    bpf->rodata->offcpu.tick_ns = tick.tv_nsec ? (uint64_t)tick.tv_nsec : 10000000;
    bpf->bss->threshold_ns = how->spec->threshold_ns;
}

static int size_maps(struct offcpu_bpf *bpf, const struct trg_config *config, struct st_error *err)
{
    uint32_t slots = config->target->kind == ST_TARGET_ALL || config->target->kind == ST_TARGET_CGROUP
                         ? SLOTS_MANY
                         : SLOTS_FEW;
    int cpus = libbpf_num_possible_cpus();

    if (cpus <= 0)
        return trg_bpf_failed(cpus, "cannot tell how many CPUs there are", err);
    bpf->bss->slots_max = slots;
    bpf_map__set_max_entries(bpf->maps.threads, slots);
    bpf_map__set_max_entries(bpf->maps.free_slots, slots);
    bpf_map__set_max_entries(bpf->maps.cpus, (uint32_t)cpus);
    return 0;
}

/* To measure needs the switches only. */
static void choose_programs(struct offcpu_bpf *bpf, bool measure_only, bool early)
{
    struct bpf_program *firing[] = {bpf->progs.offcpu_waking,    bpf->progs.st_softirq_raise,
                                    bpf->progs.st_softirq_entry, bpf->progs.st_timer_entry,
                                    bpf->progs.st_timer_exit,    bpf->progs.st_irq_entry,
                                    bpf->progs.st_irq_exit,      bpf->progs.st_output,
                                    bpf->progs.offcpu_look_at,   bpf->progs.st_data_ready};

    for (size_t i = 0; measure_only && i < sizeof(firing) / sizeof(firing[0]); i++)
        bpf_program__set_autoload(firing[i], false);
    if (libbpf_find_vmlinux_btf_id("sk_data_ready", BPF_TRACE_RAW_TP) <= 0) /* from 6.3 */
        bpf_program__set_autoload(bpf->progs.st_data_ready, false);
    bpf_program__set_autoload(bpf->progs.offcpu_scheduled, early && !measure_only);
    bpf_program__set_autoattach(bpf->progs.offcpu_adopt, false);
    bpf_program__set_autoattach(bpf->progs.offcpu_look_at, false);
}

static int add_pid(struct offcpu_bpf *bpf, pid_t pid, struct st_error *err)
{
    uint32_t key = (uint32_t)pid;
    char yes = 1;
    int rc = bpf_map__update_elem(bpf->maps.pids, &key, sizeof(key), &yes, sizeof(yes), BPF_ANY);

    return rc ? trg_bpf_failed(rc, "cannot tell the BPF program a process id", err) : 0;
}

static int add_pids(struct offcpu_bpf *bpf, const struct trg_config *config, struct st_error *err)
{
    int rc = 0;

    if (bpf->rodata->follow.mode != FOLLOW_PIDS)
        return 0;
    for (size_t i = 0; !rc && i < config->target->npids; i++)
        rc = add_pid(bpf, config->target->pids[i], err);
    if (!rc && config->command)
        rc = add_pid(bpf, config->command, err);
    return rc;
}

static int offcpu_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    struct trg_state *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return st_nomem(err, "a trigger");
    trg_hear_libbpf();
    s->config = how->config;
    s->bpf = offcpu_bpf__open();
    if (!s->bpf) {
        rc = trg_bpf_failed(-errno, "cannot open the BPF programs of 'offcpu'", err);
        free(s);
        return rc;
    }
    configure_follow(s->bpf, how->config);
    configure_offcpu(s->bpf, how);
    choose_programs(s->bpf, how->config->measure_only, how->config->early);
    rc = configure_places(s->bpf, err);
    if (!rc)
        rc = size_maps(s->bpf, how->config, err);
    if (!rc && (rc = offcpu_bpf__load(s->bpf)))
        rc = trg_bpf_failed(rc, "the kernel did not take the BPF programs of 'offcpu'", err);
    if (!rc)
        rc = add_pids(s->bpf, how->config, err);
    if (rc) {
        offcpu_bpf__destroy(s->bpf);
        free(s);
        return rc;
    }
    *state = s;
    return 0;
}

static int offcpu_set_output(struct trg_state *s, int cpu, int fd, struct st_error *err)
{
    int rc = bpf_map__update_elem(s->bpf->maps.events, &cpu, sizeof(cpu), &fd, sizeof(fd), BPF_ANY);

    return rc ? trg_bpf_failed(rc, "cannot give the BPF program its output event", err) : 0;
}

/* ---- iterators ---- */

/* Runs an iterator over all tasks, or over one, and puts what it wrote into buf. Returns the bytes, or a
 * negative errno. */
static ssize_t run_iterator(struct bpf_program *prog, pid_t tid, void *buf, size_t size)
{
    union bpf_iter_link_info which = {.task = {.tid = (uint32_t)tid}};
    LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &which, .link_info_len = sizeof(which));
    struct bpf_link *link = bpf_program__attach_iter(prog, tid ? &opts : NULL);
    size_t got = 0;
    ssize_t n;
    int fd;

    if (!link)
        return -errno;
    fd = bpf_iter_create(bpf_link__fd(link));
    if (fd < 0) {
        bpf_link__destroy(link);
        return fd;
    }
    do {
        n = read(fd, (char *)buf + got, size - got);
        if (n > 0)
            got += (size_t)n;
    } while (n > 0 ? got < size : n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        n = -errno;
    close(fd);
    bpf_link__destroy(link);
    return n < 0 ? n : (ssize_t)got;
}

/* A thread without a timer gets it at one of its next waits, where the kernel allows that. */
static int go_without_timers(struct trg_state *s, struct st_error *err)
{
    uint32_t n = s->bpf->bss->without_timer;

    if (!s->bpf->rodata->make_timers_anywhere)
        return st_fail(err, ST_EFAIL, "the kernel had no memory for the timers of %u threads", n);
    st_log_warn(
        "the kernel had no memory for the timers of %u threads: what stalls one of them is told when it "
        "ends, not before",
        n);
    return 0;
}

/* Threads that are there already. The kernel may not have had memory for all of their timers at once: then
 * again. */
static int adopt_threads(struct trg_state *s, struct st_error *err)
{
    char nothing[16];

    for (int attempt = 0; attempt < 50; attempt++) {
        ssize_t n = run_iterator(s->bpf->progs.offcpu_adopt, 0, nothing, sizeof(nothing));

        if (n < 0)
            return trg_bpf_failed((int)n, "cannot walk the kernel's list of threads", err);
        if (s->bpf->bss->broken_places)
            return st_fail(err, ST_ECANNOT,
                           "this kernel keeps its per-CPU variables elsewhere than its BTF tells");
        if (!s->bpf->bss->without_timer)
            return 0;
        usleep(1000);
    }
    return go_without_timers(s, err);
}

static int offcpu_start(struct trg_state *s, struct st_error *err)
{
    int rc = offcpu_bpf__attach(s->bpf);

    if (rc)
        return trg_bpf_failed(rc, "cannot attach the BPF programs of 'offcpu'", err);
    return adopt_threads(s, err);
}

/* ---- what the kernel side cannot see ---- */

static void read_comm(uint32_t tid, char *comm)
{
    char path[64];
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/comm", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    n = read(fd, comm, 16);
    close(fd);
    if (n <= 0)
        n = 1;
    comm[n - 1] = '\0';
}

static void complete_ongoing(struct trg_state *s, struct st_stall_record *r)
{
    struct offcpu_look look;

    if (run_iterator(s->bpf->progs.offcpu_look_at, (pid_t)r->tid, &look, sizeof(look)) !=
            (ssize_t)sizeof(look) ||
        look.seq != r->seq)
        return;
    r->kstack_n = (uint16_t)look.kstack_n;
    memcpy(r->kstack, look.kstack, look.kstack_n * sizeof(look.kstack[0]));
    if (!look.ip)
        return;
    r->ustack[0] = look.ip;
    r->ustack_n = 1;
    if (r->syscall >= 0)
        memcpy(r->syscall_args, look.args, sizeof(look.args));
    if (!look.compat)
        r->ustack_n += (uint16_t)trg_walk_user_stack((pid_t)r->pid, look.sp, look.bp, r->ustack + 1,
                                                     ST_STALL_USTACK - 1);
}

static void offcpu_complete(struct trg_state *s, struct st_stall_record *r)
{
    if (r->flags & ST_STALL_ONGOING && !r->kstack_n)
        complete_ongoing(s, r);
    if (r->waker_ctx == ST_WAKER_TASK && !r->waker_comm[0])
        read_comm(r->waker_tid, r->waker_comm);
    if (r->next_tid && !r->next_comm[0])
        read_comm(r->next_tid, r->next_comm);
}

/* ---- the rest ---- */

static void offcpu_hold(struct trg_state *s, uint64_t until_ns)
{
    __atomic_store_n(&s->bpf->bss->hold_until_ktime, until_ns, __ATOMIC_RELAXED);
}

static void add_hist(struct hist *sum, const struct hist *one)
{
    for (size_t i = 0; i < HIST_BUCKETS; i++)
        sum->bucket[i] += one->bucket[i];
    sum->sum += one->sum;
    if (one->worst > sum->worst)
        sum->worst = one->worst;
}

static int offcpu_histogram(struct trg_state *s, struct hist *sum, struct st_error *err)
{
    int cpus = libbpf_num_possible_cpus(), rc;
    struct hist *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
    uint32_t zero = 0;

    if (!each)
        return st_nomem(err, "the histogram");
    rc = bpf_map__lookup_elem(s->bpf->maps.hist, &zero, sizeof(zero), each, (size_t)cpus * sizeof(*each), 0);
    memset(sum, 0, sizeof(*sum));
    for (int i = 0; !rc && i < cpus; i++)
        add_hist(sum, &each[i]);
    free(each);
    return rc ? trg_bpf_failed(rc, "cannot read the histogram", err) : 0;
}

static uint64_t offcpu_lost(struct trg_state *s)
{
    return s->bpf->bss->lost_threads + s->bpf->bss->lost_records;
}

static void offcpu_close(struct trg_state *s)
{
    offcpu_bpf__destroy(s->bpf);
    free(s);
}

const struct trg_kind trg_offcpu = {
    .name = "offcpu",
    .record_kind = ST_STALL_OFFCPU,
    .example = "offcpu>20ms",
    .measures = "time off the CPU",
    .options_size = sizeof(struct offcpu_options),
    .keys = trg_offcpu_keys,
    .defaults = trg_offcpu_defaults,
    .open = offcpu_open,
    .set_output = offcpu_set_output,
    .start = offcpu_start,
    .hold = offcpu_hold,
    .complete = offcpu_complete,
    .histogram = offcpu_histogram,
    .lost = offcpu_lost,
    .close = offcpu_close,
    .describe = trg_offcpu_describe,
};
