/* `stalltrap watch`: histograms of what triggers measure, to choose a threshold. Nothing is recorded. */
#include "base/log.h"
#include "base/loop.h"
#include "base/opt.h"
#include "base/safetext.h"
#include "recorder/arm/alive.h"
#include "recorder/arm/joins.h"
#include "recorder/arm/launch.h"
#include "recorder/arm/metrics.h"
#include "recorder/arm/signals.h"
#include "recorder/commands.h"
#include "triggers/histogram.h"
#include "triggers/trigger.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct watch {
    struct st_target target;

    struct trg_set *triggers;

    uint64_t interval, timeout; /* ns; 0: none */

    bool quiet, json, each_thread;

    const char *prometheus; /* NULL: not wanted */

    struct rec_metrics *metrics;

    int loop;

    struct rec_watch signals, interval_timer, timeout_timer, unseen, launched;

    struct rec_launch launch;

    struct rec_alive alive;

    struct rec_joins joins; /* of a target that waits for processes */
};

enum {
    FINISHED = 1 /* what a callback returns when it is over */
};

static int add_trigger(void *to, const char *text, struct st_error *err)
{
    return trg_add(to, text, err);
}

#define CALL(n, l, a, t, f, h)                                                                               \
    {                                                                                                        \
        .name = n, .letter = l, .arg = a, .kind = ST_OPT_CALL, .to = t, .help = h, .fn = f                   \
    }
#define TIME(n, t, h)                                                                                        \
    {                                                                                                        \
        .name = n, .arg = "DUR", .kind = ST_OPT_DURATION, .to = t, .help = h                                 \
    }

static int parse(struct watch *w, int argc, char **argv, struct st_error *err)
{
    static const struct st_completer completers[] = {{"pid", st_complete_pids},
                                                     {"comm", st_complete_comms},
                                                     {"cgroup", st_complete_cgroups},
                                                     {"container", st_complete_containers},
                                                     {"on", trg_complete_word},
                                                     {NULL, st_complete_target},
                                                     {NULL, NULL}};
    static const struct st_opt_usage usage = {
        .command = "watch",
        .synopsis = "[TARGET] --on TRIGGER...",
        .about =
            "Prints, at the end (Ctrl-C), a histogram of what each trigger measures, to choose a threshold.\n"
            "TARGET: -p PID[,PID...], --comm NAME, --cgroup PATH, --container ID|NAME, -a, or -- COMMAND "
            "ARG...",
        .completers = completers,
    };
    const struct st_option table[] = {
        CALL("pid", 'p', "PID[,PID]", &w->target, st_target_add_pids, "these processes"),
        CALL("comm", 0, "NAME", &w->target, st_target_set_comm, "every process of that name"),
        CALL("cgroup", 0, "PATH", &w->target, st_target_set_cgroup, "the processes of a cgroup"),
        CALL("container", 0, "ID|NAME", &w->target, st_target_set_container, "the processes of a container"),
        CALL("all", 'a', NULL, &w->target, st_target_set_all, "the whole machine"),
        CALL("on", 0, "TRIGGER", &w->triggers, add_trigger, "what is measured, as offcpu>1ms (repeatable)"),
        TIME("interval", &w->interval, "print the histograms anew every so often (on a terminal: 1s)"),
        TIME("timeout", &w->timeout, "end after so long"),
        {.name = "by-thread",
         .kind = ST_OPT_FLAG,
         .to = &w->each_thread,
         .help = "a histogram of each thread too"},
        {.name = "json", .kind = ST_OPT_FLAG, .to = &w->json, .help = "print JSON, a line each time"},
        {.name = "prometheus",
         .arg = "FILE|PORT",
         .kind = ST_OPT_STRING,
         .to = &w->prometheus,
         .help = "keep the figures in a file, or serve them, as OpenMetrics text"},
        {.name = "quiet",
         .letter = 'q',
         .kind = ST_OPT_FLAG,
         .to = &w->quiet,
         .help = "say only what was measured"},
        {.name = NULL},
    };
    int first = st_opt_parse(&usage, table, argc, argv, false, err);

    if (first <= 0)
        return first ? first : FINISHED;
    if (w->quiet)
        st_log_level(ST_LOG_QUIET);
    if (st_opt_had_dashes(argv, first))
        return st_target_set_command(&w->target, argv + first, err);
    return st_target_more_pids(&w->target, argc, argv, first, err);
}

static int on_signal(void *ctx, struct st_error *err)
{
    struct watch *w = ctx;
    int signal = rec_signals_read(w->signals.fd);

    (void)err;
    return signal && signal != SIGUSR2 ? FINISHED : 0;
}

static int on_finished(void *ctx, struct st_error *err)
{
    (void)ctx;
    (void)err;
    return FINISHED;
}

static int on_launched(void *ctx, struct st_error *err)
{
    struct watch *w = ctx;

    rec_loop_remove(w->loop, &w->launched);
    w->launched.fd = -1;
    return rec_launch_result(&w->launch, w->target.argv[0], err);
}

/* It is enough that the triggers know. */
static int on_came(void *ctx, const struct rec_join *list, size_t n, struct st_error *err)
{
    struct watch *w = ctx;
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++)
        if (!list[i].found)
            rc = trg_joined(w->triggers, list[i].pid, err);
    return rc;
}

static int on_gone(void *ctx, struct st_error *err)
{
    const struct watch *w = ctx;
    char safe[256];

    (void)err;
    st_safe_text(safe, sizeof(safe), w->target.group.path);
    st_log_info("the cgroup %s was removed", safe);
    return FINISHED;
}

static int open_joins(struct watch *w, struct st_error *err)
{
    const struct rec_joins_to to = {on_came, on_gone, w};

    return st_target_waits(&w->target) ? rec_joins_open(&w->joins, w->loop, &w->target, &to, err) : 0;
}

static int on_ended(void *ctx, struct st_error *err)
{
    struct watch *w = ctx;
    int rc = w->launched.fd >= 0 ? on_launched(w, err) : 0;

    return rc ? rc : FINISHED;
}

static int print(struct watch *w, struct st_error *err)
{
    int rc = w->json ? trg_print_json(w->triggers, stdout, err)
                     : trg_print_histograms(w->triggers, w->each_thread, stdout, err);

    if (!rc && trg_lost(w->triggers))
        st_log_warn("%llu events could not be measured", (unsigned long long)trg_lost(w->triggers));
    if (!rc && (fflush(stdout) || ferror(stdout)))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write to stdout");
    return rc;
}

/* On a terminal the new histogram takes the place of the old one; else they follow each other, with the time.
 */
static int on_interval(void *ctx, struct st_error *err)
{
    struct watch *w = ctx;
    time_t now = time(NULL);
    char text[32] = "";

    rec_timer_clear(w->interval_timer.fd);
    if (w->json)
        return print(w, err);
    if (isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    strftime(text, sizeof(text), "%H:%M:%S", localtime(&now));
    printf("%s\n", text);
    return print(w, err);
}

static int on_unseen(void *ctx, struct st_error *err)
{
    struct watch *w = ctx;

    rec_timer_clear(w->unseen.fd);
    return trg_tell_unseen(w->triggers) ? 0 : rec_timer_set(w->unseen.fd, 0, 0, err);
}

static int add_watch(struct watch *w, struct rec_watch *watch, int fd,
                     int (*ready)(void *, struct st_error *), struct st_error *err)
{
    if (fd < 0)
        return fd;
    *watch = (struct rec_watch){.fd = fd, .ready = ready, .ctx = w};
    return rec_loop_add(w->loop, watch, err);
}

static int open_target(struct watch *w, struct st_error *err)
{
    int rc = st_target_resolve(&w->target, err);

    if (!rc && !w->triggers) {
        rc = st_fail(err, ST_EUSAGE, "what is to be measured? Name a trigger");
        st_hint(err, "stalltrap watch -p PID --on 'offcpu>1ms'");
    }
    if (!rc && w->target.kind == ST_TARGET_COMMAND)
        rc = rec_launch_open(&w->launch, w->target.argv, err);
    if (!rc && w->launch.pid)
        rc = add_watch(w, &w->launched, w->launch.result, on_launched, err);
    if (!rc)
        rc = rec_alive_open(&w->alive, w->loop, &w->target, w->launch.pid, on_ended, w, err);
    return rc ? rc : open_joins(w, err);
}

static int start(struct watch *w, struct st_error *err)
{
    struct trg_config config = {
        .target = &w->target, .command = w->launch.pid, .measure_only = true, .by_thread = true};
    int rc = trg_open(w->triggers, &config, err);

    if (!w->interval && isatty(STDOUT_FILENO) && !w->json)
        w->interval = 1000000000;
    if (!rc)
        rc = trg_start(w->triggers, err);
    if (!rc && w->prometheus)
        rc = rec_metrics_open(w->prometheus, w->triggers, NULL, w->loop,
                              w->interval ? w->interval : REC_METRICS_EVERY, &w->metrics, err);
    if (!rc && w->launch.pid)
        rc = rec_launch_go(&w->launch, err);
    if (!rc && w->interval)
        rc = rec_timer_set(w->interval_timer.fd, w->interval, w->interval, err);
    if (!rc)
        rc = rec_timer_set(w->unseen.fd, REC_UNSEEN_NS, REC_UNSEEN_NS, err);
    if (!rc && w->timeout)
        rc = rec_timer_set(w->timeout_timer.fd, w->timeout, 0, err);
    if (!rc)
        st_log_info("watching; Ctrl-C ends it");
    return rc;
}

static int run(struct watch *w, struct st_error *err)
{
    int rc = 0;

    w->loop = rec_loop_open(err);
    if (w->loop < 0)
        return w->loop;
    rc = add_watch(w, &w->signals, rec_signals_open(err), on_signal, err);
    if (!rc)
        rc = add_watch(w, &w->interval_timer, rec_timer_open(err), on_interval, err);
    if (!rc)
        rc = add_watch(w, &w->timeout_timer, rec_timer_open(err), on_finished, err);
    if (!rc)
        rc = add_watch(w, &w->unseen, rec_timer_open(err), on_unseen, err);
    if (!rc)
        rc = open_target(w, err);
    if (!rc)
        rc = start(w, err);
    while (!rc)
        rc = rec_loop_turn(w->loop, err);
    if (rc == FINISHED)
        rc = print(w, err);
    return rc ? rc : rec_metrics_finish(w->metrics, err);
}

static void close_all(struct watch *w)
{
    const int fds[] = {w->signals.fd, w->interval_timer.fd, w->timeout_timer.fd, w->unseen.fd, w->loop};

    rec_metrics_close(w->metrics);
    rec_joins_close(&w->joins);
    rec_alive_close(&w->alive);
    rec_launch_close(&w->launch);
    trg_close(w->triggers);
    st_target_free(&w->target);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int st_cmd_watch(int argc, char **argv)
{
    struct watch w = {.loop = -1};
    struct st_error err = {0};
    int rc;

    w.signals.fd = w.interval_timer.fd = w.timeout_timer.fd = w.unseen.fd = w.launched.fd = w.joins.watch.fd =
        -1;
    w.launch.go = w.launch.result = -1;
    rc = parse(&w, argc, argv, &err);
    if (!rc)
        rc = run(&w, &err);
    close_all(&w);
    return rc < 0 ? st_log_error("watch", &err) : 0;
}
