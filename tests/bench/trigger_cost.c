/* What a trigger costs, by the kernel's own run-time statistics of BPF programs: all our programs together,
 * beside a bpftrace script that asks the same, in one run of the same load: `perf bench sched pipe`, or, for
 * func, a process that calls a function. Usage: trigger_cost FOLDER-OF-SCRIPTS [LOOPS]. Exit 1 when ours cost
 * more. With TRIGGER_COST_DETAIL set, each program's part. */
#include "base/log.h"
#include "triggers/trigger.h"

#include <bpf/bpf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_PROGRAMS 256
#define MOST_CPUS     256

struct programs {
    uint32_t id[MOST_PROGRAMS];

    size_t n;
};

static const char *program_path(void)
{
    static char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    return n > 0 ? path : "";
}

/* Programs held open, so that their statistics stay readable. */
struct held {
    int fd[MOST_PROGRAMS];

    size_t n;
};

/* A trigger, and bpftrace's script for the same question. */
struct question {
    const char *trigger, *script, *asks;

    const char *event; /* the end of what is measured: part of the names of the programs that see it */

    const char *their_event; /* for calls, of both programs: the entry's and the return's */

    const char *their_names[4];

    bool calls; /* the load is calls of a function */
};

static const struct question questions[] = {
    {"offcpu>20ms", "offcpu.bt", "off-CPU histogram by thread", "switch", "switch", {"switch", NULL}, false},
    {"runq>20ms", "runq.bt", "run queue histogram", "switch", "switch", {"switch", "wakeup", NULL}, false},
    {"syscall>20ms", "syscall.bt", "system call histogram", "exit", "exit", {"sys_e", NULL}, false},
    {"func:st_bench_called>20ms",
     "func.bt",
     "function histogram",
     "uretprobe",
     "st_bench",
     {"st_bench", NULL},
     true},
};

struct cost {
    uint64_t ns;

    uint64_t events; /* how often a program with question.event in its name ran */
};

static struct programs all_programs(void)
{
    struct programs all = {.n = 0};
    uint32_t id = 0;

    while (all.n < MOST_PROGRAMS && !bpf_prog_get_next_id(id, &id))
        all.id[all.n++] = id;
    return all;
}

/* Those that are in `after`, were not there before, and have one of these words in their name (others load
 * programs too). */
static struct held newer(const struct programs *before, const struct programs *after,
                         const char *const *words)
{
    struct held new = {.n = 0};

    for (size_t i = 0; i < after->n; i++) {
        struct bpf_prog_info info = {0};
        uint32_t size = sizeof(info);
        size_t j = 0, word = 0;
        int fd;

        while (j < before->n && before->id[j] != after->id[i])
            j++;
        fd = j == before->n ? bpf_prog_get_fd_by_id(after->id[i]) : -1;
        if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
            continue;
        while (words[word] && !strstr(info.name, words[word]))
            word++;
        if (words[word])
            new.fd[new.n++] = fd;
        else
            close(fd);
    }
    return new;
}

static void release(struct held *programs)
{
    for (size_t i = 0; i < programs->n; i++)
        close(programs->fd[i]);
}

static struct cost cost_of(const struct held *programs, const char *event)
{
    struct cost sum = {0, 0};

    for (size_t i = 0; i < programs->n; i++) {
        struct bpf_prog_info info = {0};
        uint32_t size = sizeof(info);

        if (bpf_obj_get_info_by_fd(programs->fd[i], &info, &size)) {
            perror("trigger_cost: cannot read a BPF program's statistics");
            exit(2);
        }
        sum.ns += info.run_time_ns;
        if (strstr(info.name, event))
            sum.events += info.run_cnt;
    }
    return sum;
}

/* Starts bpftrace and waits until it is attached. */
static pid_t start_bpftrace(const char *folder, const struct question *q)
{
    char line[128], script[512];
    int out[2];
    FILE *f;
    pid_t pid;

    snprintf(script, sizeof(script), "%s/%s", folder, q->script);
    if (pipe(out) || (pid = fork()) < 0)
        exit(2);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], 1);
        close(out[0]);
        execlp("bpftrace", "bpftrace", script, program_path(), (char *)NULL);
        perror("trigger_cost: bpftrace");
        _exit(2);
    }
    close(out[1]);
    f = fdopen(out[0], "r");
    while (f && fgets(line, sizeof(line), f))
        if (!strcmp(line, "ready\n"))
            return pid;
    fprintf(stderr, "trigger_cost: bpftrace did not start\n");
    exit(2);
}

__attribute__((noinline)) void st_bench_called(int i)
{
    __asm__ volatile("" ::"r"(i) : "memory");
}

static pid_t fork_caller(void)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0;; i++)
        st_bench_called(i);
}

static int open_outputs(struct trg_set *set, struct st_error *err)
{
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct perf_event_attr attr;

    trg_output_attr(&attr);
    for (int cpu = 0; cpu < cpus; cpu++) {
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        int rc;

        if (fd < 0)
            return st_fail_errno(err, ST_EFAIL, "cannot open the output event");
        if (mmap(NULL, 65 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
            return st_fail_errno(err, ST_EFAIL, "cannot map the output event");
        rc = trg_set_output(set, cpu, fd, err);
        if (rc)
            return rc;
    }
    return 0;
}

static struct trg_set *start_trigger(const struct question *q, bool measure_only)
{
    static struct st_target everyone = {.kind = ST_TARGET_ALL}, ourselves = {.kind = ST_TARGET_PIDS};
    static pid_t caller;
    struct trg_config config = {.target = q->calls ? &ourselves : &everyone, .measure_only = measure_only};
    struct trg_set *set = NULL;
    struct st_error err = {0};

    if (q->calls && !caller) {
        char pid[16];

        caller = fork_caller();
        snprintf(pid, sizeof(pid), "%d", caller);
        if (st_target_add_pids(&ourselves, pid, &err) || st_target_resolve(&ourselves, &err))
            exit(st_log_error("trigger_cost", &err));
    }
    if (trg_add(&set, q->trigger, &err) || trg_open(set, &config, &err) || open_outputs(set, &err) ||
        trg_start(set, &err))
        exit(st_log_error("trigger_cost", &err));
    return set;
}

static void run_load(const struct question *q, const char *loops)
{
    char command[128];

    if (q->calls) {
        sleep(2); /* the caller calls all the time */
        return;
    }
    snprintf(command, sizeof(command), "perf bench sched pipe -l %s >/dev/null", loops);
    if (system(command)) {
        fprintf(stderr, "trigger_cost: perf bench sched pipe failed\n");
        exit(2);
    }
}

static double per_event(struct cost before, struct cost after)
{
    return (double)(after.ns - before.ns) / (double)(after.events - before.events);
}

static void print_each(const struct held *programs)
{
    for (size_t i = 0; i < programs->n; i++) {
        struct bpf_prog_info info = {0};
        uint32_t size = sizeof(info);

        if (!bpf_obj_get_info_by_fd(programs->fd[i], &info, &size) && info.run_cnt)
            printf("  %-16s %10llu runs %6.0f ns\n", info.name, (unsigned long long)info.run_cnt,
                   (double)info.run_time_ns / (double)info.run_cnt);
    }
}

/* One run with both; prints the line. Returns our share of the other's cost. */
static double compare(const struct question *q, bool measure_only, const char *folder, const char *loops)
{
    static const char *const our_names[] = {"offcpu_", "runq_", "syscall_", "func_", "span_", "st_", NULL};
    struct programs none = all_programs(), with_other, with_both;
    struct held other, ours;
    struct cost other_before, ours_before;
    struct trg_set *set;
    double us, them;
    pid_t bpftrace = start_bpftrace(folder, q);

    with_other = all_programs();
    set = start_trigger(q, measure_only);
    with_both = all_programs();
    other = newer(&none, &with_other, q->their_names);
    ours = newer(&with_other, &with_both, our_names);
    other_before = cost_of(&other, q->their_event);
    ours_before = cost_of(&ours, q->event);
    run_load(q, loops);
    us = per_event(ours_before, cost_of(&ours, q->event));
    them = per_event(other_before, cost_of(&other, q->their_event)) * (q->calls ? 2 : 1);
    if (getenv("TRIGGER_COST_DETAIL")) {
        print_each(&ours);
        print_each(&other);
    }
    release(&ours);
    release(&other);
    trg_close(set);
    kill(bpftrace, SIGKILL);
    waitpid(bpftrace, NULL, 0);
    printf("trigger_%.*s_%s %.0f ns/event vs bpftrace %s %.0f ns/event: ratio %.2f\n",
           (int)strcspn(q->trigger, ">:"), q->trigger, measure_only ? "watch" : "armed", us, q->asks, them,
           us / them);
    fflush(stdout);
    return us / them;
}

int main(int argc, char **argv)
{
    const char *loops = argc > 2 ? argv[2] : "200000";
    bool dearer = false;

    if (argc < 2) {
        fprintf(stderr, "usage: trigger_cost FOLDER-OF-SCRIPTS [LOOPS]\n");
        return 2;
    }
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) {
        perror("trigger_cost: cannot switch the kernel's BPF statistics on");
        return 2;
    }
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
        for (int measure_only = 0; measure_only < 2; measure_only++)
            dearer |= compare(&questions[i], measure_only, argv[1], loops) > 1;
    return dearer;
}
