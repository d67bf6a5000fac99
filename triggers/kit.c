/* The BPF objects of all kinds: loaded, told whom to follow, attached, read. */
#include "triggers/kit.h"
#include "base/log.h"
#include "triggers/histogram.h"
#include "triggers/places.h"
#include "triggers/privilege.h"
#include "triggers/python_stall.h"
#include "triggers/record_text.h"
#include "triggers/timeout_asked.h"
#include "triggers/ustack.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_FEW  32768 /* threads at once, of some processes */
#define SLOTS_MANY 65536 /* of the machine */

/* ---- open ---- */

static const char *kind_name(const struct trg_state *s)
{
    return s->how.spec->kind->name;
}

static int failed(const struct trg_state *s, int rc, const char *what, struct st_error *err)
{
    char text[128];

    snprintf(text, sizeof(text), "%s '%s'", what, kind_name(s));
    return trg_bpf_failed(rc, text, err);
}

int trg_kit_no_skeleton(struct trg_state *s, struct st_error *err)
{
    return failed(s, -errno, "cannot open the BPF programs of", err);
}

static void configure_follow(struct follow_config *follow, const struct trg_config *config)
{
    switch (config->target->kind) {
    case ST_TARGET_ALL:
        follow->mode = FOLLOW_ALL;
        break;
    case ST_TARGET_CGROUP:
        follow->mode = FOLLOW_CGROUP;
        break;
    default:
        follow->mode = FOLLOW_PIDS;
    }
    follow->self = (uint32_t)getpid();
    follow->cgroup = config->target->group.id;
    if (config->target->kind == ST_TARGET_COMM)
        snprintf(follow->comm, sizeof(follow->comm), "%s", config->target->comm);
    follow->newborn = config->target->kind == ST_TARGET_COMMAND;
}

static int configure_places(struct trg_vars *v, struct st_error *err)
{
    struct trg_places places;
    int rc = trg_find_places(&places, err);

    if (rc)
        return rc;
    *v->preempt_count_place = places.preempt_count;
    *v->current_task_place = places.current_task;
    *v->wake_up_start = places.wake_up;
    *v->wake_up_end = places.wake_up_end;
    return 0;
}

static void configure_span(struct trg_state *s)
{
    const struct trg_spec *spec = s->how.spec;

    if (!s->span)
        return;
    s->span->kind = spec->kind->record_kind;
    s->span->trigger = s->how.trigger;
    s->span->measure_only = s->how.config->measure_only;
    if (s->how.config->marks)
        snprintf(s->span->mark, sizeof(s->span->mark), "%s", spec->text);
    s->span->worst = spec->worst;
    s->span->count_idle = spec->options->count_idle;
    trg_kit_idle(s, &s->span->idle);
    if (!s->own_filter)
        s->span->filter = spec->options->filter;
}

static int size_maps(struct trg_state *s, struct st_error *err)
{
    enum st_target_kind target = s->how.config->target->kind;
    uint32_t slots = target == ST_TARGET_ALL || target == ST_TARGET_CGROUP ? SLOTS_MANY : SLOTS_FEW;
    int cpus = libbpf_num_possible_cpus();

    if (cpus <= 0)
        return trg_bpf_failed(cpus, "cannot tell how many CPUs there are", err);
    *s->vars.slots_max = slots;
    bpf_map__set_max_entries(s->vars.threads, slots);
    bpf_map__set_max_entries(s->vars.free_slots, slots);
    bpf_map__set_max_entries(s->vars.cpus, (uint32_t)cpus);
    if (s->waits && (s->how.spec->options->learn_idle || !s->how.config->measure_only))
        bpf_map__set_max_entries(s->waits,
                                 s->how.spec->options->learn_idle ? WAIT_PLACES : WAIT_PLACES_NOTED);
    if (s->how.config->by_thread)
        bpf_map__set_max_entries(s->vars.first_hists, HIST_FIRST);
    return 0;
}

static int add_pid(struct trg_state *s, pid_t pid, struct st_error *err)
{
    uint32_t key = (uint32_t)pid;
    char yes = 1;
    int rc = bpf_map__update_elem(s->vars.pids, &key, sizeof(key), &yes, sizeof(yes), BPF_ANY);

    return rc ? trg_bpf_failed(rc, "cannot tell the BPF program a process id", err) : 0;
}

static int add_pids(struct trg_state *s, struct st_error *err)
{
    const struct trg_config *config = s->how.config;
    int rc = 0;

    if (s->vars.follow->mode != FOLLOW_PIDS)
        return 0;
    for (size_t i = 0; !rc && i < config->target->npids; i++)
        rc = add_pid(s, config->target->pids[i], err);
    if (!rc && config->command)
        rc = add_pid(s, config->command, err);
    return rc;
}

static int configure(struct trg_state *s, struct st_error *err)
{
    int rc = configure_places(&s->vars, err);

    configure_follow(s->vars.follow, s->how.config);
    bpf_program__set_autoload(bpf_object__find_program_by_name(s->object, "st_rename"),
                              s->how.config->target->kind == ST_TARGET_COMM);
    configure_span(s);
    *s->vars.threshold_ns = s->how.spec->threshold_ns;
    *s->vars.by_thread = s->how.config->by_thread;
    return rc ? rc : size_maps(s, err);
}

int trg_kit_open(const struct trg_open *how, trg_take_fn *take, struct trg_state **state,
                 struct st_error *err)
{
    struct trg_state *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return st_nomem(err, "a trigger");
    s->how = *how;
    trg_hear_libbpf();
    rc = take(s, err);
    if (!rc)
        rc = configure(s, err);
    if (!rc && (rc = bpf_object__load_skeleton(s->parts)))
        rc = failed(s, rc, "the kernel did not take the BPF programs of", err);
    if (!rc)
        rc = add_pids(s, err);
    if (rc)
        trg_kit_close(s);
    else
        *state = s;
    return rc;
}

int trg_kit_set_output(struct trg_state *s, int cpu, int fd, struct st_error *err)
{
    int rc = bpf_map__update_elem(s->vars.events, &cpu, sizeof(cpu), &fd, sizeof(fd), BPF_ANY);

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

int trg_kit_walk(struct bpf_program *iterator, const char *what, struct st_error *err)
{
    char nothing[16];
    ssize_t n = run_iterator(iterator, 0, nothing, sizeof(nothing));

    return n < 0 ? trg_bpf_failed((int)n, what, err) : 0;
}

#define TRIES       50 /* to make all timers */
#define TRIES_MORE  50 /* of a kind that is nothing without them */
#define TRY_US      1000
#define TRY_MORE_US 50000

/* A thread without a timer gets it at one of its next waits, where the kernel allows that. */
static int go_without_timers(struct trg_state *s, struct st_error *err)
{
    uint32_t n = *s->vars.without_timer;

    if (!s->timers_later)
        return st_fail(
            err, ST_EFAIL,
            "the kernel had no memory for the timer of '%s', in %d tries within %d ms: it has to be had "
            "without waiting; free some memory (memory.max of this control group, `free`) and try again",
            kind_name(s), TRIES + TRIES_MORE, (TRIES * TRY_US + TRIES_MORE * TRY_MORE_US) / 1000);
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
    int tries = s->timers_later ? TRIES : TRIES + TRIES_MORE;
    char nothing[16];

    for (int i = 0; i < tries; i++) {
        ssize_t n = run_iterator(s->adopt, 0, nothing, sizeof(nothing));

        if (n < 0)
            return trg_bpf_failed((int)n, "cannot walk the kernel's list of threads", err);
        if (*s->vars.broken_places)
            return st_fail(err, ST_ECANNOT,
                           "this kernel keeps its per-CPU variables elsewhere than its BTF tells");
        if (!*s->vars.without_timer)
            return 0;
        usleep(i < TRIES ? TRY_US : TRY_MORE_US);
    }
    return go_without_timers(s, err);
}

int trg_kit_start(struct trg_state *s, struct st_error *err)
{
    const struct st_target *target = s->how.config->target;
    struct trg_python python;
    int rc = bpf_object__attach_skeleton(s->parts);

    if (rc)
        return failed(s, rc, "cannot attach the BPF programs of", err);
    for (size_t i = 0; s->pythons && !s->how.config->measure_only && i < target->npids; i++)
        trg_python_watch(s->pythons, target->pids[i], &python);
    return adopt_threads(s, err);
}

/* The programs watch who comes into a cgroup, and the first thread of who gets a name; the others are in a
 * walk over all threads. */
int trg_kit_joined(struct trg_state *s, pid_t pid, struct st_error *err)
{
    bool by_name = s->how.config->target->kind == ST_TARGET_COMM;
    struct trg_python python;

    if (s->pythons && !s->how.config->measure_only)
        trg_python_watch(s->pythons, pid, &python);
    return by_name && st_target_has_threads(pid) ? adopt_threads(s, err) : 0;
}

int trg_kit_keep(struct trg_state *s, struct bpf_link *link, const char *what, struct st_error *err)
{
    if (!link)
        return trg_bpf_failed(-errno, what, err);
    if (s->nlinks == TRG_LINKS) {
        bpf_link__destroy(link);
        return st_fail(err, ST_EFAIL, "'%s' would be attached in more than %d places", kind_name(s),
                       TRG_LINKS);
    }
    s->links[s->nlinks++] = link;
    return 0;
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

/* Looks at the thread of a record. False: it is not in that stall any more. */
static bool look_at(struct trg_state *s, const struct st_stall_record *r, struct thread_look *look)
{
    *s->vars.look_tid = r->tid;
    return run_iterator(s->look_at, (pid_t)r->tid, look, sizeof(*look)) == (ssize_t)sizeof(*look) &&
           (look->seq == r->seq || s->look_any);
}

/* Of the call that it sleeps in. Since when is known of a stall that is one call. */
static void add_timeout(const struct trg_state *s, struct st_stall_record *r, const struct thread_look *look)
{
    bool is_call = !s->span || r->kind == ST_STALL_SYSCALL;
    uint64_t ns = look->compat ? 0
                               : trg_timeout_asked((pid_t)r->pid, look->syscall, look->args,
                                                   is_call ? r->start_ktime : 0);
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, ns);
    if (ns)
        trg_add_attribute(r, "timeout_ns", text);
}

static void complete_ongoing(struct trg_state *s, const struct trg_python *python, struct st_stall_record *r)
{
    struct thread_look look;
    uint16_t n;

    if (!look_at(s, r, &look))
        return;
    r->kstack_n = (uint16_t)look.kstack_n;
    memcpy(r->kstack, look.kstack, look.kstack_n * sizeof(look.kstack[0]));
    if (s->span)
        r->state = look.state;
    if (!look.ip)
        return;
    r->ustack[0] = look.ip;
    r->ustack_n = 1;
    if (r->syscall >= 0 && r->syscall == look.syscall)
        memcpy(r->syscall_args, look.args, sizeof(look.args));
    if (look.state)
        add_timeout(s, r, &look);
    if (!look.compat)
        r->ustack_n += (uint16_t)trg_walk_user_stack((pid_t)r->pid, look.sp, look.bp, r->ustack + 1,
                                                     ST_STALL_USTACK - 1);
    n = r->ustack_n;
    /* Where it is still off its CPU behind that, it was meanwhile. */
    if (python && trg_python_add(python, r) && !look_at(s, r, &look))
        r->ustack_n = n;
}

void trg_kit_name_threads(struct st_stall_record *r)
{
    if (r->waker_ctx == ST_WAKER_TASK && !r->waker_comm[0])
        read_comm(r->waker_tid, r->waker_comm);
    if (r->next_tid && !r->next_comm[0])
        read_comm(r->next_tid, r->next_comm);
}

void trg_kit_complete(struct trg_state *s, struct st_stall_record *r)
{
    struct trg_python python;
    /* Also for the next stall: the program may have begun since. */
    bool runs_python = s->pythons && trg_python_watch(s->pythons, (pid_t)r->pid, &python);

    if (r->flags & ST_STALL_ONGOING && !r->kstack_n && s->look_at)
        complete_ongoing(s, runs_python ? &python : NULL, r);
    trg_kit_name_threads(r);
}

/* ---- the rest ---- */

void trg_kit_hold(struct trg_state *s, uint64_t until_ns)
{
    __atomic_store_n(s->vars.hold_until_ktime, until_ns, __ATOMIC_RELAXED);
}

static int add_thread(void *ctx, const struct thread_hist *thread, struct st_error *err)
{
    (void)err;
    trg_hist_add(ctx, &thread->hist);
    return 0;
}

int trg_kit_histogram(struct trg_state *s, struct hist *sum, struct st_error *err)
{
    int cpus = libbpf_num_possible_cpus(), rc;
    struct hist *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
    uint32_t zero = 0;

    if (!each)
        return st_nomem(err, "the histogram");
    rc = bpf_map__lookup_elem(s->vars.hist, &zero, sizeof(zero), each, (size_t)cpus * sizeof(*each), 0);
    memset(sum, 0, sizeof(*sum));
    for (int i = 0; !rc && i < cpus; i++)
        trg_hist_add(sum, &each[i]);
    free(each);
    return rc ? trg_bpf_failed(rc, "cannot read the histogram", err)
              : trg_kit_threads(s, add_thread, sum, err);
}

int trg_kit_threads(struct trg_state *s, trg_thread_fn *fn, void *ctx, struct st_error *err)
{
    struct thread_hist h;
    uint32_t *last = NULL, tid, key;
    int rc = 0;

    for (uint32_t i = 0; !rc && i < bpf_map__max_entries(s->vars.first_hists); i++)
        if (!bpf_map__lookup_elem(s->vars.first_hists, &i, sizeof(i), &h, sizeof(h), 0) && h.tid)
            rc = fn(ctx, &h, err);
    while (!rc && !bpf_map__get_next_key(s->vars.thread_hists, last, &key, sizeof(key))) {
        tid = key;
        last = &tid;
        if (bpf_map__lookup_elem(s->vars.thread_hists, &tid, sizeof(tid), &h, sizeof(h), 0))
            continue;
        h.tid = tid;
        rc = fn(ctx, &h, err);
    }
    return rc;
}

uint64_t trg_kit_lost(struct trg_state *s)
{
    return *s->vars.lost_threads + *s->vars.lost_records + *s->vars.lost_hists;
}

const char *trg_kit_hook(struct trg_state *s)
{
    return s->hook;
}

void trg_kit_close(struct trg_state *s)
{
    for (size_t i = 0; i < s->nlinks; i++)
        bpf_link__destroy(s->links[i]);
    if (s->parts)
        bpf_object__destroy_skeleton(s->parts);
    free(s->skeleton);
    if (s->free_own)
        s->free_own(s->own);
    free(s);
}

bool trg_choose_uring(const struct trg_state *s, struct bpf_program *submit, struct bpf_program *complete,
                      bool wanted)
{
    bool there = wanted && !s->how.config->measure_only && trg_has_btf_tracepoint("io_uring_submit_req") &&
                 trg_has_btf_tracepoint("io_uring_complete");

    bpf_program__set_autoload(submit, there);
    bpf_program__set_autoload(complete, there);
    return there;
}
