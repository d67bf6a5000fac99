/* What an offcpu trigger costs a context switch, by the kernel's own run-time statistics of BPF programs: all
 * our programs together, beside a bpftrace script that asks the same, on the same switches of one run of
 * `perf bench sched pipe`. Usage: trigger_cost SCRIPT.bt [LOOPS]. Exit 1 when ours cost more. With
 * TRIGGER_COST_DETAIL set, each program's part. */
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

/* Programs held open, so that their statistics stay readable. */
struct held {
    int fd[MOST_PROGRAMS];

    size_t n;
};

struct cost {
    uint64_t ns;

    uint64_t switches; /* how often the program on sched_switch ran */
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

static struct cost cost_of(const struct held *programs)
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
        if (strstr(info.name, "switch"))
            sum.switches += info.run_cnt;
    }
    return sum;
}

/* Starts bpftrace and waits until it is attached. */
static pid_t start_bpftrace(const char *script)
{
    char line[128];
    int out[2];
    FILE *f;
    pid_t pid;

    if (pipe(out) || (pid = fork()) < 0)
        exit(2);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], 1);
        close(out[0]);
        execlp("bpftrace", "bpftrace", script, (char *)NULL);
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

static struct trg_set *start_trigger(bool measure_only)
{
    static struct st_target everyone = {.kind = ST_TARGET_ALL};
    struct trg_config config = {.target = &everyone, .measure_only = measure_only};
    struct trg_set *set = NULL;
    struct st_error err = {0};

    if (trg_add(&set, "offcpu>20ms", &err) || trg_open(set, &config, &err) || open_outputs(set, &err) ||
        trg_start(set, &err))
        exit(st_log_error("trigger_cost", &err));
    return set;
}

static void run_pipe_bench(const char *loops)
{
    char command[128];

    snprintf(command, sizeof(command), "perf bench sched pipe -l %s >/dev/null", loops);
    if (system(command)) {
        fprintf(stderr, "trigger_cost: perf bench sched pipe failed\n");
        exit(2);
    }
}

static double per_switch(struct cost before, struct cost after)
{
    return (double)(after.ns - before.ns) / (double)(after.switches - before.switches);
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
static double compare(const char *name, bool measure_only, const char *script, const char *loops)
{
    static const char *const their_names[] = {"switch", NULL}, *const our_names[] = {"offcpu_", "st_", NULL};
    struct programs none = all_programs(), with_other, with_both;
    struct held other, ours;
    struct cost other_before, ours_before;
    struct trg_set *set;
    double us, them;
    pid_t bpftrace = start_bpftrace(script);

    with_other = all_programs();
    set = start_trigger(measure_only);
    with_both = all_programs();
    other = newer(&none, &with_other, their_names);
    ours = newer(&with_other, &with_both, our_names);
    other_before = cost_of(&other);
    ours_before = cost_of(&ours);
    run_pipe_bench(loops);
    us = per_switch(ours_before, cost_of(&ours));
    them = per_switch(other_before, cost_of(&other));
    if (getenv("TRIGGER_COST_DETAIL"))
        print_each(&ours);
    release(&ours);
    release(&other);
    trg_close(set);
    kill(bpftrace, SIGKILL);
    waitpid(bpftrace, NULL, 0);
    printf("%s %.0f ns/switch vs bpftrace off-CPU histogram by thread %.0f ns/switch: ratio %.2f\n", name, us,
           them, us / them);
    return us / them;
}

int main(int argc, char **argv)
{
    const char *loops = argc > 2 ? argv[2] : "200000";
    double armed, watched;

    if (argc < 2) {
        fprintf(stderr, "usage: trigger_cost SCRIPT.bt [LOOPS]\n");
        return 2;
    }
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) {
        perror("trigger_cost: cannot switch the kernel's BPF statistics on");
        return 2;
    }
    armed = compare("trigger_offcpu_armed", false, argv[1], loops);
    watched = compare("trigger_offcpu_watch", true, argv[1], loops);
    return armed > 1 || watched > 1;
}
