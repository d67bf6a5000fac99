/* The options of `arm`. */
#include "recorder/arm/options.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/opt.h"
#include "recorder/sources/sources.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t UNTIL_END = 2000000000; /* ns */

static int add_trigger(void *to, const char *text, struct st_error *err)
{
    return trg_add(to, text, err);
}

static int add_mark(void *to, const char *text, struct st_error *err)
{
    return trg_add_mark(to, text, err);
}

/* One snapshot a list. */
static int push_action(struct arm_actions *list, const char *option, const char *text, struct st_error *err)
{
    struct rec_action action;
    int rc = rec_action_parse(option, text, &action, err);

    if (rc)
        return rc;
    if (action.kind == REC_ACTION_SNAPSHOT) {
        if (list->has_snapshot)
            return st_fail(err, ST_EUSAGE, "%s: 'snapshot' was given before", option);
        list->has_snapshot = true;
        list->before = list->each.n;
        return 0;
    }
    return st_vec_push(&list->each, action) ? st_nomem(err, "the list of actions") : 0;
}

static int add_action(void *to, const char *text, struct st_error *err)
{
    struct arm_options *o = to;

    return push_action(&o->then, "--then", text, err);
}

static int add_at_end(void *to, const char *text, struct st_error *err)
{
    struct arm_options *o = to;

    return push_action(&o->at_end, "--at-end", text, err);
}

static int set_kernel(void *to, const char *unused, struct st_error *err)
{
    (void)unused;
    (void)err;
    *(int *)to = 1;
    return 0;
}

static int set_no_kernel(void *to, const char *unused, struct st_error *err)
{
    (void)unused;
    (void)err;
    *(int *)to = 0;
    return 0;
}

static int set_rings(void *to, const char *text, struct st_error *err)
{
    static const char *const words[] = {"auto", "thread", "cpu"};
    static const enum rec_rings values[] = {REC_RINGS_AUTO, REC_RINGS_THREAD, REC_RINGS_CPU};

    for (size_t i = 0; i < 3; i++)
        if (!strcmp(text, words[i])) {
            *(enum rec_rings *)to = values[i];
            return 0;
        }
    return st_fail(err, ST_EUSAGE, "--rings: '%s' is none of auto, thread, cpu", text);
}

static int set_callgraph(void *to, const char *text, struct st_error *err)
{
    static const char *const words[] = {"fp", "dwarf", "lbr"};
    static const enum rec_callgraph values[] = {REC_CALLGRAPH_FP, REC_CALLGRAPH_DWARF, REC_CALLGRAPH_LBR};

    for (size_t i = 0; i < 3; i++)
        if (!strcmp(text, words[i])) {
            *(enum rec_callgraph *)to = values[i];
            return 0;
        }
    return st_fail(err, ST_EUSAGE, "--callgraph: '%s' is none of fp, dwarf, lbr", text);
}

#define PLAIN(n, l, a, k, t, h)                                                                              \
    {                                                                                                        \
        .name = n, .letter = l, .arg = a, .kind = k, .to = t, .help = h                                      \
    }
#define NUMBER(n, l, a, t, h)                                                                                \
    {                                                                                                        \
        .name = n, .letter = l, .arg = a, .kind = ST_OPT_NUMBER, .to = t, .help = h, .most = INT_MAX         \
    }
#define CALL(n, l, a, t, f, h)                                                                               \
    {                                                                                                        \
        .name = n, .letter = l, .arg = a, .kind = ST_OPT_CALL, .to = t, .help = h, .fn = f                   \
    }

/* Filled at run time: the addresses are of one struct on the caller's stack. */
static int parse(struct arm_options *o, int argc, char **argv, struct st_error *err)
{
    static const struct st_completer completers[] = {{"pid", st_complete_pids},
                                                     {"comm", st_complete_comms},
                                                     {"cgroup", st_complete_cgroups},
                                                     {"container", st_complete_containers},
                                                     {"on", trg_complete_word},
                                                     {"mark", trg_complete_mark},
                                                     {"source", rec_source_complete},
                                                     {NULL, st_complete_target},
                                                     {NULL, NULL}};
    static const struct st_opt_usage usage = {
        .command = "arm",
        .synopsis = "[TARGET] [--on TRIGGER]... [OPTION]...",
        .about = "Records the target into a ring, and saves it when a trigger fires, on Ctrl-C, or on "
                 "`stalltrap snap`.\n"
                 "TARGET: -p PID[,PID...], --comm NAME, --cgroup PATH, --container ID|NAME, -a, or -- "
                 "COMMAND ARG...",
        .completers = completers,
    };
    const struct st_option table[] = {
        CALL("pid", 'p', "PID[,PID]", &o->target, st_target_add_pids, "these processes"),
        CALL("comm", 0, "NAME", &o->target, st_target_set_comm, "every process of that name"),
        CALL("cgroup", 0, "PATH", &o->target, st_target_set_cgroup, "the processes of a cgroup"),
        CALL("container", 0, "ID|NAME", &o->target, st_target_set_container, "the processes of a container"),
        CALL("all", 'a', NULL, &o->target, st_target_set_all, "the whole machine"),
        CALL("on", 0, "TRIGGER", &o->triggers, add_trigger,
             "snapshot when this happens, as offcpu>20ms (repeatable)"),
        CALL("mark", 0, "EVENT", &o->marks, add_mark,
             "put these on the timeline: tracepoint:CAT:NAME, usdt:..., func:NAME, write:FD (repeatable)"),
        PLAIN("source", 0, "NAME", ST_OPT_STRING, &o->source, "auto, intel-pt, sample or step"),
        CALL("kernel", 0, NULL, &o->kernel, set_kernel,
             "record kernel code too (default for root, where the source can)"),
        CALL("no-kernel", 0, NULL, &o->kernel, set_no_kernel, "record user code only"),
        PLAIN("ring", 0, "SIZE", ST_OPT_SIZE, &o->ring_bytes, "of trace data a ring, as 4M"),
        PLAIN("ring-total", 0, "SIZE", ST_OPT_SIZE, &o->ring_total,
              "all rings together (intel-pt, sample; default: an eighth of the memory); then idle threads "
              "have none"),
        CALL("rings", 0, "thread|cpu", &o->rings, set_rings, "one ring a thread, or one a CPU"),
        NUMBER("freq", 'F', "N", &o->frequency, "samples a second (sample; default: what costs 1 %)"),
        CALL("callgraph", 0, "fp|dwarf|lbr", &o->callgraph, set_callgraph,
             "how samples of user code tell who called whom (default fp)"),
        PLAIN("every-switch", 0, NULL, ST_OPT_FLAG, &o->every_switch,
              "sample each context switch and wake-up, also where they cost more than 1 % (sample)"),
        PLAIN("syscalls", 0, NULL, ST_OPT_FLAG, &o->syscalls, "mark every system call (sample)"),
        PLAIN("output", 'o', "PREFIX", ST_OPT_STRING, &o->prefix,
              "writes PREFIX.N.data and PREFIX.N.db (default: stalltrap)"),
        NUMBER("snapshots", 0, "N", &o->snapshots, "end after N traps (default 1; 0: never)"),
        PLAIN("keep-free", 0, "SIZE", ST_OPT_SIZE, &o->keep_free,
              "nothing fires while less is free on the disk (with --snapshots 0: 3/4 of what is free now)"),
        PLAIN("cooldown", 0, "DUR", ST_OPT_DURATION, &o->cooldown, "after a trap nothing fires for so long"),
        PLAIN("after", 0, "DUR", ST_OPT_DURATION, &o->after, "go on recording so long past the trigger"),
        PLAIN("until-end", 0, "DUR", ST_OPT_DURATION, &o->until_end,
              "wait so long at most until the stall has ended, then write (default 2s; 0: write at once)"),
        PLAIN("warm-up", 0, "DUR", ST_OPT_DURATION, &o->warm_up, "nothing fires so long after arming"),
        PLAIN("timeout", 0, "DUR", ST_OPT_DURATION, &o->timeout, "end after so long, whatever happened"),
        CALL("then", 0, "ACTION", o, add_action,
             "for each trap, in order: snapshot, signal:NUM:PID, shell:CMD or CMD (repeatable)"),
        CALL("at-end", 0, "ACTION", o, add_at_end, "the same, when the recording ends (repeatable)"),
        PLAIN("prometheus", 0, "FILE|PORT", ST_OPT_STRING, &o->prometheus,
              "what the triggers measure as OpenMetrics text, in a file or served"),
        PLAIN("no-decode", 0, NULL, ST_OPT_FLAG, &o->no_decode, "write PREFIX.N.data only"),
        NUMBER("ready-fd", 0, "FD", &o->ready_fd, "write \"armed\\n\" to this descriptor when live"),
        PLAIN("quiet", 'q', NULL, ST_OPT_FLAG, &o->quiet, "say only what was written, and what went wrong"),
        PLAIN("verbose", 'v', NULL, ST_OPT_FLAG, &o->verbose, "say more"),
        {.name = NULL},
    };

    return st_opt_parse(&usage, table, argc, argv, false, err);
}

static int take_operands(struct arm_options *o, int argc, char **argv, int first, struct st_error *err)
{
    if (st_opt_had_dashes(argv, first))
        return st_target_set_command(&o->target, argv + first, err);
    return st_target_more_pids(&o->target, argc, argv, first, err);
}

static int check(const struct arm_options *o, struct st_error *err)
{
    if (o->ready_fd >= 0 && fcntl((int)o->ready_fd, F_GETFD) < 0)
        return st_fail_errno(err, ST_EUSAGE, "--ready-fd %ld", o->ready_fd);
    if (o->ready_fd >= 0)
        fcntl((int)o->ready_fd, F_SETFD, FD_CLOEXEC);
    if (o->prometheus && !o->triggers)
        return st_fail(err, ST_EUSAGE, "--prometheus tells what triggers measure: it needs --on");
    if (!*o->prefix)
        return st_fail(err, ST_EUSAGE, "-o: the prefix of the files is empty");
    if (o->prefix[strlen(o->prefix) - 1] == '/') {
        st_fail(err, ST_EUSAGE, "-o: '%s' is a folder: the files need a name", o->prefix);
        return st_hint(err, "write it as -o %sstalltrap", o->prefix);
    }
    return 0;
}

int arm_options_parse(struct arm_options *o, int argc, char **argv, struct st_error *err)
{
    int first, rc;

    *o = (struct arm_options){.source = "auto",
                              .kernel = -1,
                              .prefix = "stalltrap",
                              .snapshots = 1,
                              .ready_fd = -1,
                              .cooldown = UINT64_MAX,
                              .until_end = UNTIL_END,
                              .keep_free = UINT64_MAX};
    first = parse(o, argc, argv, err);
    o->cooldown_given = o->cooldown != UINT64_MAX;
    if (!o->cooldown_given)
        o->cooldown = 0;
    if (first <= 0)
        return first ? first : 1;
    rc = take_operands(o, argc, argv, first, err);
    if (!rc)
        rc = check(o, err);
    st_log_level(o->quiet ? ST_LOG_QUIET : o->verbose ? ST_LOG_VERBOSE : ST_LOG_NORMAL);
    return rc;
}

void arm_options_free(struct arm_options *o)
{
    trg_close(o->triggers);
    trg_close(o->marks);
    st_vec_free(&o->then.each);
    st_vec_free(&o->at_end.each);
    st_target_free(&o->target);
}
