/* bpftrace: runs a script of the user's; a line of its output that begins with "stalltrap" fires. A process
 * of our own reads the lines. */
#include "base/clock.h"
#include "base/infile.h"
#include "base/log.h"
#include "base/safetext.h"
#include "triggers/language/kind.h"
#include "triggers/privilege.h"
#include "triggers/record_text.h"

#include "triggers/bpftrace.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORD     "stalltrap"
#define ARMED    "stalltrap-armed"
#define START_MS 60000

/* Output comes only once every probe is attached; and this is the first. */
static const char hello[] = "\ninterval:ms:20 { if (@stalltrap_armed == 0) { @stalltrap_armed = 1; "
                            "printf(\"" ARMED "\\n\"); } }\n";

/* Between us and the reader. */
struct shared {
    uint64_t hold_until, last, seq, lost;

    struct hist hist;
};

struct trg_state {
    struct bpftrace_bpf *bpf;

    struct trg_open how;

    struct shared *shared;

    int script, output; /* memory file; pipe; -1: none */

    int complaints; /* memory file: bpftrace's stderr */

    pid_t bpftrace, reader; /* 0: not running */
};

/* ---- open ---- */

static void bpftrace_close(struct trg_state *s);

static int copy_script(struct trg_state *s, const char *path, struct st_error *err)
{
    char block[65536];
    ssize_t n = 0;
    int from = st_infile_open(path, ST_INFILE_FILE);

    if (from < 0 && errno == ENODEV)
        return st_fail(err, ST_EFAIL, "bpftrace:%s is no regular file", path);
    if (from < 0)
        return st_fail_errno(err, ST_EFAIL, "bpftrace:%s", path);
    s->script = memfd_create("stalltrap.bt", 0);
    while (s->script >= 0 && (n = read(from, block, sizeof(block))) > 0)
        if (write(s->script, block, (size_t)n) != n)
            break;
    close(from);
    if (s->script < 0 || n || write(s->script, hello, sizeof(hello) - 1) != (ssize_t)sizeof(hello) - 1)
        return st_fail_errno(err, ST_EFAIL, "cannot read the script '%s'", path);
    return 0;
}

static int load(struct trg_state *s, struct st_error *err)
{
    int rc;

    trg_hear_libbpf();
    s->bpf = bpftrace_bpf__open();
    if (!s->bpf)
        return trg_bpf_failed(-errno, "cannot open the BPF program of 'bpftrace'", err);
    s->bpf->rodata->self = (uint32_t)getpid();
    rc = bpftrace_bpf__load(s->bpf);
    if (rc)
        return trg_bpf_failed(rc, "the kernel did not take the BPF program of 'bpftrace'", err);
    s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->shared != MAP_FAILED)
        return 0;
    s->shared = NULL;
    return st_nomem(err, "a trigger");
}

static int bpftrace_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    struct trg_state *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return st_nomem(err, "a trigger");
    s->how = *how;
    s->script = s->output = s->complaints = -1;
    rc = copy_script(s, how->spec->options->name, err);
    if (!rc)
        rc = load(s, err);
    if (rc)
        bpftrace_close(s);
    else
        *state = s;
    return rc;
}

static int bpftrace_set_output(struct trg_state *s, int cpu, int fd, struct st_error *err)
{
    int rc = bpf_map__update_elem(s->bpf->maps.events, &cpu, sizeof(cpu), &fd, sizeof(fd), BPF_ANY);

    return rc ? trg_bpf_failed(rc, "cannot give the BPF program its output event", err) : 0;
}

/* ---- the reader ---- */

static void measure(struct shared *shared, uint64_t now)
{
    uint64_t took = now - shared->last;
    unsigned power = took ? 63 - (unsigned)__builtin_clzll(took) : 0;
    unsigned step = (power >= 3 ? took >> (power - 3) : took << (3 - power)) & (HIST_STEPS - 1);

    if (shared->last) {
        shared->hist.bucket[power * HIST_STEPS + step]++;
        shared->hist.sum += took;
        if (took > shared->hist.worst)
            shared->hist.worst = took;
    }
    shared->last = now;
}

/* "tid=N " before the reason says which thread it is about; else it is the target's first one. */
static const char *take_thread(const struct trg_state *s, const char *text, struct st_stall_record *r)
{
    const struct st_target *target = s->how.config->target;
    char path[64], line[64] = "";
    unsigned tid = s->how.config->command ? (unsigned)s->how.config->command
                   : target->npids        ? (unsigned)target->pids[0]
                                          : 0;
    int used = 0;
    FILE *f;

    if (sscanf(text, "tid=%u%n", &tid, &used) == 1)
        text += used;
    r->tid = r->pid = tid;
    snprintf(path, sizeof(path), "/proc/%u/comm", tid);
    f = fopen(path, "re");
    if (f && fgets(line, sizeof(line), f))
        snprintf(r->comm, sizeof(r->comm), "%.*s",
                 (int)strcspn(line, "\n") > 15 ? 15 : (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
    snprintf(path, sizeof(path), "/proc/%u/status", tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Tgid: %u", &r->pid) == 1)
            break;
    if (f)
        fclose(f);
    return text + strspn(text, " \t");
}

static void tell(struct trg_state *s, const char *text)
{
    LIBBPF_OPTS(bpf_test_run_opts, opts);
    static struct st_stall_record r;
    uint32_t zero = 0;
    uint64_t now = st_kernel_ns();

    measure(s->shared, now);
    if (s->how.config->measure_only || now < __atomic_load_n(&s->shared->hold_until, __ATOMIC_RELAXED))
        return;
    memset(&r, 0, sizeof(r));
    r = (struct st_stall_record){.magic = ST_STALL_MAGIC,
                                 .version = ST_STALL_VERSION,
                                 .kind = ST_STALL_BPFTRACE,
                                 .flags = ST_STALL_FIRED,
                                 .trigger = s->how.trigger,
                                 .seq = ++s->shared->seq,
                                 .start_ktime = now,
                                 .end_ktime = now,
                                 .syscall = -1};
    text = take_thread(s, text, &r);
    if (*text)
        r.extra_n = (uint16_t)(1 + snprintf(r.extra, sizeof(r.extra), "reason=%.240s", text));
    if (bpf_map__update_elem(s->bpf->maps.told, &zero, sizeof(zero), &r, sizeof(r), BPF_ANY) ||
        bpf_prog_test_run_opts(bpf_program__fd(s->bpf->progs.bpftrace_tell), &opts))
        __atomic_fetch_add(&s->shared->lost, 1, __ATOMIC_RELAXED);
}

static void child_of(pid_t parent)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0); /* Ctrl-C is for arm */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void read_lines(struct trg_state *s)
{
    FILE *from = fdopen(s->output, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    prctl(PR_SET_NAME, "stalltrap-lines");
    while (from && (n = getline(&line, &room, from)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = '\0';
        if (strncmp(line, WORD, strlen(WORD)) || !strcmp(line, ARMED))
            continue;
        tell(s, line + strlen(WORD) + strspn(line + strlen(WORD), " \t:"));
    }
    st_log_warn("the script of '%s' has ended: it fires no more", s->how.spec->text);
    _exit(0);
}

/* ---- start ---- */

static void run_script(const struct trg_state *s, int output, pid_t parent)
{
    char path[32];

    child_of(parent);
    snprintf(path, sizeof(path), "/dev/fd/%d", s->script);
    lseek(s->script, 0, SEEK_SET);
    dup2(output, STDOUT_FILENO);
    dup2(s->complaints, STDERR_FILENO);
    execlp("bpftrace", "bpftrace", "-q", "-B", "line", path, (char *)NULL);
    _exit(127);
}

static int not_started(struct trg_state *s, const char *why, struct st_error *err)
{
    char said[512] = "", safe[1024];
    int status = 0;
    ssize_t n;

    if (waitpid(s->bpftrace, &status, WNOHANG) == s->bpftrace)
        s->bpftrace = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !s->bpftrace) {
        st_fail(err, ST_ECANNOT, "--on bpftrace needs the program bpftrace");
        return st_hint(err, "apt-get install bpftrace");
    }
    n = pread(s->complaints, said, sizeof(said) - 1, 0);
    st_safe_lines(safe, sizeof(safe), n > 0 ? said : "");
    st_fail(err, ST_EFAIL, "'%s': %s", s->how.spec->text, why);
    return *safe ? st_hint(err, "%.400s", safe) : ST_EFAIL;
}

/* Until the script's first line, which is ours. */
static int wait_for_hello(struct trg_state *s, struct st_error *err)
{
    struct pollfd wait = {.fd = s->output, .events = POLLIN};
    uint64_t until = st_kernel_ns() + START_MS * 1000000ull;
    char line[4096];
    size_t n = 0;

    while (st_kernel_ns() < until) {
        if (poll(&wait, 1, 100) <= 0)
            continue;
        if (read(s->output, line + n, 1) != 1)
            return not_started(s, "bpftrace ended before the script ran", err);
        if (line[n] != '\n' && n + 1 < sizeof(line)) {
            n++;
            continue;
        }
        line[n] = '\0';
        if (!strcmp(line, ARMED))
            return 0;
        n = 0;
    }
    return not_started(s, "bpftrace was not ready after a minute", err);
}

static int bpftrace_start(struct trg_state *s, struct st_error *err)
{
    pid_t parent = getpid();
    int ends[2], rc;

    s->complaints = memfd_create("stalltrap.bt.err", MFD_CLOEXEC);
    if (s->complaints < 0 || pipe2(ends, O_CLOEXEC))
        return st_fail_errno(err, ST_EFAIL, "cannot start bpftrace");
    s->output = ends[0];
    s->bpftrace = fork();
    if (!s->bpftrace)
        run_script(s, ends[1], parent);
    close(ends[1]);
    if (s->bpftrace < 0) {
        s->bpftrace = 0;
        return st_fail_errno(err, ST_EFAIL, "cannot start bpftrace");
    }
    rc = wait_for_hello(s, err);
    if (rc)
        return rc;
    s->reader = fork();
    if (!s->reader) {
        child_of(parent);
        read_lines(s);
    }
    if (s->reader > 0)
        return 0;
    s->reader = 0;
    return st_fail_errno(err, ST_EFAIL, "cannot read what bpftrace prints");
}

/* ---- the rest ---- */

static void bpftrace_hold(struct trg_state *s, uint64_t until_ns)
{
    __atomic_store_n(&s->shared->hold_until, until_ns, __ATOMIC_RELAXED);
}

static void bpftrace_complete(struct trg_state *s, struct st_stall_record *r)
{
    (void)s;
    (void)r;
}

static int bpftrace_histogram(struct trg_state *s, struct hist *sum, struct st_error *err)
{
    (void)err;
    *sum = s->shared->hist;
    return 0;
}

static uint64_t bpftrace_lost(struct trg_state *s)
{
    return s->bpf->bss->lost_records + s->shared->lost;
}

static void end(pid_t *pid, int signal)
{
    if (*pid <= 0)
        return;
    kill(*pid, signal);
    waitpid(*pid, NULL, 0);
    *pid = 0;
}

static void bpftrace_close(struct trg_state *s)
{
    const int fds[] = {s->script, s->output, s->complaints};

    end(&s->reader, SIGKILL);
    end(&s->bpftrace, SIGKILL);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (s->shared)
        munmap(s->shared, sizeof(*s->shared));
    bpftrace_bpf__destroy(s->bpf);
    free(s);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "told by its bpftrace script");
    trg_put_attribute(&o, r, "reason", ": ", "");
}

/* ---- the language ---- */

static bool set_script(struct trg_options *o, const char *word)
{
    return (size_t)snprintf(o->name, sizeof(o->name), "%s", word) < sizeof(o->name);
}

static const struct trg_name script_name = {true, "the name of a bpftrace script", set_script, trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_END};

const struct trg_kind trg_bpftrace = {
    .name = "bpftrace",
    .record_kind = ST_STALL_BPFTRACE,
    .example = "bpftrace:slow.bt",
    .measures = "time between its lines",
    .takes = &script_name,
    .hits = true,
    .own_programs = true,
    .keys = keys,
    .open = bpftrace_open,
    .set_output = bpftrace_set_output,
    .start = bpftrace_start,
    .hold = bpftrace_hold,
    .complete = bpftrace_complete,
    .histogram = bpftrace_histogram,
    .lost = bpftrace_lost,
    .close = bpftrace_close,
    .describe = describe,
};
