/* The source `step`, as arm sees it: it commands the stepping helper (helper.h) and reads its rings. */
#include "recorder/sources/source.h"
#include "base/log.h"
#include "base/units.h"
#include "perfdata/format.h"
#include "recorder/sources/step/helper.h"
#include "recorder/sources/step/message.h"
#include "recorder/sources/step/step.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES = 4 << 20,

    /* Bits of the intel_pt PMU's config (arch/x86/events/intel/pt.c: the format attributes). */
    CONFIG_PT = 1,
    CONFIG_CYC = 1 << 1,
    CONFIG_MTC = 1 << 9,
    CONFIG_TSC = 1 << 10,
    CONFIG_NORETCOMP = 1 << 11,
    CONFIG_BRANCH = 1 << 13,
    CONFIG_MTC_PERIOD = 0xf << 14,
};

struct rec_source {
    int sock;

    pid_t helper;

    struct step_shared *shared;

    bool ended; /* the helper said so */

    bool told_refused; /* that a process may not be traced */

    struct rec_ring *rings; /* of the freeze */

    struct rec_switch *switches;

    uint64_t marked[STEP_SLOTS]; /* bytes ever written into each ring, when they were marked */
};

bool step_no_ret_compression, step_no_breaks;

/* ------------------------------------------------------------------ */
/* Whether it can                                                      */

static int probe_process(pid_t pid, struct st_error *err)
{
    char path[64];
    int fd;

    /* Opening it asks for the same right as ptrace does (mm/access: PTRACE_MODE_ATTACH), and for that of the
     * file's owner, and touches nothing. */
    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno != EACCES && errno != EPERM)
        return 0; /* it ended: open() tells */
    st_fail(err, ST_ECANNOT, "no permission to trace process %d", pid);
    return st_hint(
        err,
        "run as root or with CAP_SYS_PTRACE, and CAP_DAC_OVERRIDE for a process of another user; for your "
        "own processes kernel.yama.ptrace_scope may forbid it");
}

static int step_probe(const struct rec_source_config *config, struct st_error *err)
{
    int rc = 0;

#ifndef __x86_64__
    return st_fail(err, ST_ECANNOT, "source step works on x86-64 only");
#endif
    if (config->target->kind == ST_TARGET_ALL) {
        st_fail(err, ST_ECANNOT, "source step cannot trace all processes");
        return st_hint(err, "name some: -p PID, --comm NAME, --cgroup PATH, --container NAME, or -- COMMAND");
    }
    if (config->rings == REC_RINGS_CPU)
        return st_fail(err, ST_ECANNOT, "source step has a ring a thread, none a CPU: leave --rings cpu out");
    for (size_t i = 0; !rc && i < config->target->npids; i++)
        rc = probe_process(config->target->pids[i], err);
    return rc;
}

/* ------------------------------------------------------------------ */
/* Talking with the helper                                             */

static int helper_died(struct rec_source *s, struct st_error *err)
{
    s->ended = true;
    return st_fail(
        err, ST_EFAIL,
        "the stepping helper (process %d) has died: the target, stepped by it, may have died with it",
        s->helper);
}

/* Waits for the answer `kind`; what else comes meanwhile is noted. */
static int await(struct rec_source *s, enum step_message_kind kind, struct step_message *m,
                 struct st_error *err)
{
    do {
        if (step_message_receive(s->sock, m, true) <= 0)
            return helper_died(s, err);
        if (m->kind == STEP_MSG_ENDED)
            s->ended = true;
    } while (m->kind != kind);
    return m->code ? st_fail(err, m->code, "%s", m->text) : 0;
}

static uint64_t raw_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int command(struct rec_source *s, enum step_message_kind kind, pid_t first, struct step_message *m,
                   struct st_error *err)
{
    *m = (struct step_message){.kind = kind, .first = first, .value = raw_now()};
    if (step_message_send(s->sock, m))
        return helper_died(s, err);
    return await(s, kind, m, err);
}

/* ------------------------------------------------------------------ */
/* Opening                                                             */

static int start_helper(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    struct step_helper h = {
        .arm = getpid(),
        .target = config->target,
        .command = config->command,
        .shared = s->shared,
        .no_breaks = step_no_breaks,
        .encoding = {.ret_compression = !step_no_ret_compression},
    };
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return st_fail_errno(err, ST_EFAIL, "cannot make a socket for the stepping helper");
    s->helper = fork();
    if (!s->helper) {
        close(pair[0]);
        h.sock = pair[1];
        step_helper_main(&h);
    }
    close(pair[1]);
    s->sock = pair[0];
    if (s->helper < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot start the stepping helper");
    return 0;
}

static void step_close(struct rec_source *s)
{
    struct step_message m = {.kind = STEP_MSG_LEAVE};

    if (!s)
        return;
    if (s->sock >= 0) {
        step_message_send(s->sock, &m);
        close(s->sock);
    }
    while (s->helper > 0 && waitpid(s->helper, NULL, 0) < 0 && errno == EINTR)
        ;
    free(s->rings);
    free(s->switches);
    step_shared_free(s->shared);
    free(s);
}

static int step_open(const struct rec_source_config *config, struct rec_source **source, struct st_error *err)
{
    struct rec_source *s = calloc(1, sizeof(*s));
    struct step_message m;
    int rc;

    if (!s)
        return st_nomem(err, "the stepping source");
    s->sock = -1;
    rc = step_shared_create(config->ring_bytes ? config->ring_bytes : RING_BYTES, &s->shared, err);
    if (!rc)
        rc = start_helper(s, config, err);
    if (!rc)
        rc = await(s, STEP_MSG_ATTACH, &m, err);
    if (rc)
        step_close(s);
    else
        *source = s;
    return rc;
}

static int step_start(struct rec_source *s, struct st_error *err)
{
    struct step_message m;

    return command(s, STEP_MSG_START, -1, &m, err);
}

/* ------------------------------------------------------------------ */
/* Freezing                                                            */

static int step_freeze(struct rec_source *s, struct rec_first first, struct rec_freeze *how,
                       struct st_error *err)
{
    struct step_message m;
    int rc = command(s, STEP_MSG_FREEZE, first.tid, &m, err);

    if (!rc)
        *how = (struct rec_freeze){.asked_time = m.value, .done_time = m.done};
    return rc;
}

static void describe_ring(struct rec_ring *to, const struct step_slot *slot, uint32_t idx)
{
    const struct ptenc_ring *ring = &slot->ring;
    size_t at = ring->head % ring->size;

    *to = (struct rec_ring){.idx = idx,
                            .tid = slot->tid,
                            .pid = slot->pid,
                            .cpu = -1,
                            .first_time = slot->first_time,
                            .stopped = slot->state == STEP_SLOT_LIVE ? slot->stopped : 0};
    if (ring->head <= ring->size) {
        to->part[0] = ring->data;
        to->size[0] = ring->head;
        return;
    }
    to->offset = ring->head - ring->size;
    to->part[0] = ring->data + at;
    to->size[0] = ring->size - at;
    to->part[1] = ring->data;
    to->size[1] = at;
}

static int step_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
{
    uint32_t found = 0;

    free(s->rings);
    s->rings = calloc(s->shared->nslots, sizeof(*s->rings));
    if (!s->rings)
        return st_nomem(err, "the list of rings");
    for (uint32_t i = 0; i < s->shared->nslots; i++)
        if (s->shared->slots[i].state != STEP_SLOT_FREE && s->shared->slots[i].ring.head) {
            describe_ring(&s->rings[found], &s->shared->slots[i], found);
            found++;
        }
    *rings = s->rings;
    *n = found;
    return 0;
}

/* The helper goes on writing. */
static uint64_t bytes_written(const struct step_slot *slot)
{
    return __atomic_load_n(&slot->ring.head, __ATOMIC_RELAXED);
}

static void step_mark(struct rec_source *s)
{
    for (uint32_t i = 0; i < s->shared->nslots; i++)
        s->marked[i] = bytes_written(&s->shared->slots[i]);
}

/* A slot that was given to another thread since has lost what it held. */
static bool step_has_room(struct rec_source *s)
{
    for (uint32_t i = 0; i < s->shared->nslots; i++) {
        const struct step_slot *slot = &s->shared->slots[i];
        uint64_t written = bytes_written(slot);

        if (written < s->marked[i] ||
            (written > s->shared->ring_bytes && written - s->marked[i] > s->shared->ring_bytes / 4))
            return false;
    }
    return true;
}

static size_t kept_switches(const struct step_slot *slot)
{
    if (slot->state == STEP_SLOT_FREE)
        return 0;
    return slot->nswitches < STEP_SWITCHES ? slot->nswitches : STEP_SWITCHES;
}

static int by_time(const void *a, const void *b)
{
    const struct rec_switch *x = a, *y = b;

    return (x->time > y->time) - (x->time < y->time);
}

static size_t add_switches(struct rec_switch *to, const struct step_slot *slot)
{
    size_t n = kept_switches(slot);

    for (size_t i = 0; i < n; i++) {
        const struct step_switch *sw = &slot->switches[(slot->nswitches - n + i) % STEP_SWITCHES];

        to[i] = (struct rec_switch){.time = sw->time,
                                    .pid = slot->pid,
                                    .tid = slot->tid,
                                    .cpu = sw->cpu,
                                    .out = sw->out,
                                    .preempt = sw->preempt};
    }
    return n;
}

static int step_all_switches(struct rec_source *s, const struct rec_switch **switches, size_t *n,
                             struct st_error *err)
{
    size_t total = 0;

    for (uint32_t i = 0; i < s->shared->nslots; i++)
        total += kept_switches(&s->shared->slots[i]);
    free(s->switches);
    s->switches = calloc(total + 1, sizeof(*s->switches));
    if (!s->switches)
        return st_nomem(err, "the list of context switches");
    *n = 0;
    for (uint32_t i = 0; i < s->shared->nslots; i++)
        *n += add_switches(s->switches + *n, &s->shared->slots[i]);
    qsort(s->switches, *n, sizeof(*s->switches), by_time);
    *switches = s->switches;
    return 0;
}

static int step_resume_all(struct rec_source *s, struct st_error *err)
{
    struct step_message m;

    return command(s, STEP_MSG_RESUME, -1, &m, err);
}

/* ------------------------------------------------------------------ */
/* Watching                                                            */

static int step_poll_fd(struct rec_source *s)
{
    return s->sock;
}

static int step_service(struct rec_source *s, struct st_error *err)
{
    struct step_message m;
    int rc;

    while ((rc = step_message_receive(s->sock, &m, false)) > 0)
        if (m.kind == STEP_MSG_ENDED)
            s->ended = true;
    if (!rc)
        return helper_died(s, err);
    return s->ended;
}

/* The number of the intel_pt PMU here, or one that no PMU here has. */
static uint32_t pmu_type(void)
{
    uint32_t most = 7, type;
    char path[300];
    struct dirent *e;
    DIR *d = opendir("/sys/bus/event_source/devices");

    while (d && (e = readdir(d))) {
        FILE *f;

        snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", e->d_name);
        f = fopen(path, "re");
        if (!f)
            continue;
        if (fscanf(f, "%u", &type) == 1 && type > most)
            most = type;
        fclose(f);
    }
    if (d)
        closedir(d);
    return most + 1;
}

/* Times in the packets are the perf clock's: mult 1, shift 0, zero 0 (struct perf_event_mmap_page,
 * cap_user_time_zero). */
static void step_pt_event(struct rec_source *s, struct perf_event_attr *attr, const char **name,
                          uint64_t *priv, size_t npriv)
{
    const uint64_t words[PD_PT_PRIV_MAX] = {
        [PD_PT_PMU_TYPE] = pmu_type(),
        [PD_PT_TIME_MULT] = 1,
        [PD_PT_CAP_USER_TIME_ZERO] = 1,
        [PD_PT_TSC_BIT] = CONFIG_TSC,
        [PD_PT_NORETCOMP_BIT] = CONFIG_NORETCOMP,
        [PD_PT_MTC_BIT] = CONFIG_MTC,
        [PD_PT_MTC_FREQ_BITS] = CONFIG_MTC_PERIOD,
        [PD_PT_CYC_BIT] = CONFIG_CYC,
    };

    (void)s;
    *attr = (struct perf_event_attr){
        .size = sizeof(*attr),
        .type = (uint32_t)words[PD_PT_PMU_TYPE],
        .config = CONFIG_PT | CONFIG_TSC | CONFIG_BRANCH | (step_no_ret_compression ? CONFIG_NORETCOMP : 0),
        .sample_period = 1,
        .sample_type =
            PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .sample_id_all = 1,
    };
    *name = "intel_pt//u";
    memset(priv, 0, npriv * sizeof(*priv));
    memcpy(priv, words, (npriv < PD_PT_PRIV_MAX ? npriv : PD_PT_PRIV_MAX) * sizeof(*priv));
}

static void step_describe(struct rec_source *s, char *text, size_t size)
{
    uint32_t threads = s->shared->live;
    char ring[32];

    snprintf(text, size, "user, %s a thread, %u thread%s",
             st_format_size(s->shared->ring_bytes, ring, sizeof(ring)), threads, threads == 1 ? "" : "s");
}

uint64_t step_count(const struct rec_source *s)
{
    return s->shared->steps;
}

/* Of one that may not be traced the reason is told once. */
static int step_joined(struct rec_source *s, pid_t pid, struct st_error *err)
{
    struct st_error why = {0};
    struct step_message m;
    int rc = command(s, STEP_MSG_JOIN, pid, &m, &why);

    if (rc != ST_ECANNOT)
        return rc ? st_fail(err, rc, "%s", why.text) : 0;
    if (!s->told_refused)
        st_log_warn("a process that came is not recorded: %s (told once)", why.text);
    s->told_refused = true;
    return 0;
}

const struct rec_source_ops rec_source_step = {
    .name = "step",
    .summary =
        "every branch of a user process, by ptrace stepping, as Intel PT packets: works anywhere, slow",
    .distorts = "--source step makes the target compute a thousand times slower or more: times that triggers "
                "measure include that, and a wait may be for a thread that is being stepped",
    .probe = step_probe,
    .open = step_open,
    .start = step_start,
    .joined = step_joined,
    .freeze = step_freeze,
    .rings = step_rings,
    .resume = step_resume_all,
    .poll_fd = step_poll_fd,
    .service = step_service,
    .trace_event = step_pt_event,
    .describe = step_describe,
    .mark = step_mark,
    .has_room = step_has_room,
    .own_switches = true,
    .switches = step_all_switches,
    .close = step_close,
};
