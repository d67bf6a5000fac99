/* Steps a command and compares: what the stepper executed (its hook) with what libipt decodes from its rings.
 */
#ifndef ST_TEST_STEP_HARNESS_H
#define ST_TEST_STEP_HARNESS_H

#include "recorder/sources/step/helper.h"
#include "recorder/sources/step/step.h"

#include <errno.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOG_MAX = 4000000,
    NEAR = 100, /* how far ahead of the instruction it tells libipt may look for one */
};

struct harness_insn {
    pid_t tid;

    uint64_t ip;

    uint8_t bytes[16]; /* as they were when it was executed */
};

/* In shared memory, filled by the helper. */
struct harness_log {
    uint64_t n;

    struct harness_insn insn[LOG_MAX];
};

struct harness {
    struct rec_source *source;

    struct st_target target;

    struct rec_source_config config;

    pid_t child;

    int go; /* a byte to it lets the child exec */

    int status; /* of the child, from wait(2) */
};

static struct harness_log *harness_log;

/* Runs in the helper. */
static inline void harness_executed(pid_t tid, uint64_t ip)
{
    struct harness_insn *insn = &harness_log->insn[harness_log->n];

    if (harness_log->n >= LOG_MAX)
        return;
    harness_log->n++;
    insn->tid = tid;
    insn->ip = ip;
    for (size_t size = sizeof(insn->bytes); size; size--) {
        struct iovec to = {insn->bytes, size}, from = {(void *)ip, size};

        if (process_vm_readv(tid, &to, 1, &from, 1, 0) == (ssize_t)size)
            break;
    }
}

/* ------------------------------------------------------------------ */

static const struct rec_source_ops *const ops = &rec_source_step;

static inline void harness_must(int rc, const struct st_error *err, const char *what)
{
    if (!rc)
        return;
    fprintf(stderr, "%s: %s\n", what, err->text);
    abort();
}

static inline void harness_log_begin(void)
{
    if (!harness_log)
        harness_log = mmap(NULL, sizeof(*harness_log), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    madvise(harness_log, sizeof(*harness_log), MADV_REMOVE);
    harness_log->n = 0;
    step_executed = harness_executed;
}

/* Starts argv in a child that waits before its exec, as arm does. `in_child` (may be NULL) runs instead of
 * the exec. */
static inline void harness_fork(struct harness *x, char *const *argv, int (*in_child)(void))
{
    int go[2];

    memset(x, 0, sizeof(*x));
    if (pipe2(go, O_CLOEXEC))
        abort();
    fflush(NULL);
    x->child = fork();
    if (!x->child) {
        char byte;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int sig = 1; sig < 32; sig++)
            signal(sig, SIG_DFL); /* cmocka catches the fatal ones */
        close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(126);
        if (in_child)
            _exit(in_child());
        if (argv)
            execv(argv[0], argv);
        _exit(127);
    }
    close(go[0]);
    x->go = go[1];
    x->config.target = &x->target;
}

static inline void harness_open(struct harness *x)
{
    struct st_error err = {0};

    harness_must(ops->probe(&x->config, &err), &err, "probe");
    harness_must(ops->open(&x->config, &x->source, &err), &err, "open");
    harness_must(ops->start(x->source, &err), &err, "start");
}

static inline void harness_let_go(struct harness *x)
{
    if (write(x->go, "x", 1) != 1)
        abort();
}

static inline void harness_wait(struct harness *x)
{
    if (x->child > 0 && waitpid(x->child, &x->status, 0) != x->child)
        abort();
    x->child = -1;
}

/* Arms a command from its first instruction. */
static inline void harness_arm_command(struct harness *x, char *const *argv)
{
    harness_fork(x, argv, NULL);
    x->target.kind = ST_TARGET_COMMAND;
    x->config.command = x->child;
    harness_open(x);
    harness_let_go(x);
}

/* Arms running processes. */
static inline void harness_arm_pids(struct harness *x, pid_t *pids, size_t n)
{
    x->target = (struct st_target){.kind = ST_TARGET_PIDS, .pids = pids, .npids = n};
    x->config.target = &x->target;
    harness_open(x);
}

static inline void harness_arm_pid(struct harness *x, pid_t *pid)
{
    harness_arm_pids(x, pid, 1);
}

/* Until every thread has ended. Non-zero: it took longer than that. */
static inline int harness_until_end(struct harness *x, int seconds)
{
    struct st_error err = {0};

    for (int i = 0; i < seconds * 10; i++) {
        struct pollfd p = {.fd = ops->poll_fd(x->source), .events = POLLIN};
        int rc;

        poll(&p, 1, 100);
        rc = ops->service(x->source, &err);
        if (rc < 0)
            harness_must(rc, &err, "service");
        if (rc)
            return 0;
    }
    return -1;
}

static inline void harness_freeze(struct harness *x, const struct rec_ring **rings, size_t *n)
{
    struct st_error err = {0};
    struct rec_freeze how;

    harness_must(ops->freeze(x->source, (struct rec_first){-1, -1}, &how, &err), &err, "freeze");
    harness_must(ops->rings(x->source, rings, n, &err), &err, "rings");
}

static inline void harness_resume(struct harness *x)
{
    struct st_error err = {0};

    harness_must(ops->resume(x->source, &err), &err, "resume");
}

static inline void harness_close(struct harness *x)
{
    ops->close(x->source);
    x->source = NULL;
    close(x->go);
}

/* ------------------------------------------------------------------ */
/* Watching a process from outside                                     */

static inline uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* A machine that is busy with other things may take so long for what takes milliseconds. */
enum { PATIENCE_MS = 60000 };

/* Waits until the condition holds, at most PATIENCE_MS; its value is whether it did. */
#define UNTIL(condition)                                                                                     \
    ({                                                                                                       \
        uint64_t until_ = now_ms() + PATIENCE_MS;                                                            \
        bool holds_;                                                                                         \
        while (!(holds_ = (condition)) && now_ms() < until_)                                                 \
            sleep_ms(5);                                                                                     \
        holds_;                                                                                              \
    })

/* What a process's state letter is (proc(5)); 0: it is gone. */
static inline char state_of(pid_t pid)
{
    char path[64], state = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(f);
    return state;
}

/* The number behind `key` in /proc/PID/status; -1: it is not there. */
static inline int status_number(pid_t pid, const char *key)
{
    char path[64], line[128];
    int value = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            value = atoi(line + strlen(key));
    if (f)
        fclose(f);
    return value;
}

/* Whether any thread of a process is traced. */
static inline bool is_traced(pid_t pid)
{
    bool traced = false;
    pid_t *tids;
    int n = st_target_threads(pid, &tids, NULL);

    for (int i = 0; i < n; i++)
        traced = traced || status_number(tids[i], "TracerPid:") > 0;
    if (n >= 0)
        free(tids);
    return traced;
}

/* Steps a program from before its first line to its end; returns its status from wait(2). */
static inline int step_through(int (*program)(void))
{
    struct harness x;
    pid_t pid;

    harness_fork(&x, NULL, program);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    if (harness_until_end(&x, 200))
        abort();
    harness_close(&x);
    harness_wait(&x);
    return x.status;
}

/* A program for whoever needs one that goes on for ever: it hardly ever runs. */
static inline int works_on(void)
{
    while (getpid())
        sleep_ms(1);
    return 0;
}

/* ------------------------------------------------------------------ */
/* Comparing                                                           */

/* The stepper's own record of a thread, walked beside libipt's. */
struct harness_walk {
    pid_t tid;

    uint64_t at; /* in the log */

    bool any; /* code may be anywhere in the log */

    uint64_t compared, differences, errors;
};

static inline const struct harness_insn *harness_next(struct harness_walk *w)
{
    while (w->at < harness_log->n && harness_log->insn[w->at].tid != w->tid)
        w->at++;
    return w->at < harness_log->n ? &harness_log->insn[w->at++] : NULL;
}

/* Code as it was when it was executed, for it may have changed since. */
static inline int harness_read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
                                    void *context)
{
    const struct harness_walk *w = context;
    const struct harness_insn *insn;
    unsigned near = 0;

    (void)asid;
    for (uint64_t at = w->at; at < harness_log->n && (w->any || near < NEAR); at++) {
        insn = &harness_log->insn[at];
        if (insn->tid != w->tid)
            continue;
        near++;
        if (insn->ip != ip)
            continue;
        if (size > sizeof(insn->bytes))
            size = sizeof(insn->bytes);
        memcpy(buffer, insn->bytes, size);
        return (int)size;
    }
    return -pte_nomap;
}

static inline int harness_events(struct pt_insn_decoder *decoder, int status)
{
    struct pt_event event;

    while (status >= 0 && (status & pts_event_pending))
        status = pt_insn_event(decoder, &event, sizeof(event));
    return status;
}

static inline void harness_differ(struct harness_walk *w, uint64_t got, uint64_t want)
{
    if (w->differences++ < 5)
        fprintf(stderr, "thread %d, instruction %lu: decoded %lx, executed %lx\n", w->tid, w->compared, got,
                want);
}

static inline void harness_compare_from(struct harness_walk *w, struct pt_insn_decoder *decoder, int status)
{
    struct pt_insn insn;

    for (;;) {
        const struct harness_insn *want;

        status = harness_events(decoder, status);
        if (status < 0 || (status & pts_eos))
            break;
        status = pt_insn_next(decoder, &insn, sizeof(insn));
        if (status < 0 && insn.iclass == ptic_error)
            break;
        want = harness_next(w);
        w->compared++;
        if (!want || want->ip != insn.ip) {
            harness_differ(w, insn.ip, want ? want->ip : 0);
            return;
        }
        if (status < 0)
            break;
    }
    if (status < 0 && status != -pte_eos) {
        uint64_t offset = 0;

        pt_insn_get_offset(decoder, &offset);
        fprintf(stderr, "thread %d: %s at offset %lx, instruction %lu\n", w->tid,
                pt_errstr(pt_errcode(status)), offset, w->compared);
        w->errors++;
    }
}

/* Decodes one ring that has not wrapped and compares it with all that was executed since the log began. */
static inline struct harness_walk harness_compare(const struct rec_ring *ring)
{
    struct harness_walk w = {.tid = ring->tid};
    struct pt_config config;
    struct pt_insn_decoder *decoder;
    int status;

    pt_config_init(&config);
    config.begin = (uint8_t *)ring->part[0];
    config.end = config.begin + ring->size[0];
    decoder = pt_insn_alloc_decoder(&config);
    pt_image_set_callback(pt_insn_get_image(decoder), harness_read_code, &w);
    status = pt_insn_sync_forward(decoder);
    harness_compare_from(&w, decoder, status);
    pt_insn_free_decoder(decoder);
    while (harness_next(&w))
        w.differences++;
    return w;
}

#endif
