/* The kernel and what it lets this user do. */
#include "recorder/doctor/doctor.h"
#include "recorder/perf/event.h"
#include "recorder/perf/privileges.h"
#include "recorder/perf/ring.h"

#include "base/units.h"
#include "triggers/needs.h"
#include "triggers/tracepoints.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static void add_version(struct doctor *d)
{
    struct utsname u;
    int major = 0, minor = 0;

    if (uname(&u))
        return;
    sscanf(u.release, "%d.%d", &major, &minor);
    doctor_add(d, "kernel", "kernel", DOCTOR_INFO, NULL, "%s", u.release);
    if (major > 6 || (major == 6 && minor >= 13))
        doctor_add(d, "kernel.aux_pause", "freeze in the kernel (aux_pause)", DOCTOR_YES, NULL,
                   "Linux 6.13 or newer");
    else
        doctor_add(d, "kernel.aux_pause", "freeze in the kernel (aux_pause)", DOCTOR_NO,
                   "nothing to do: the recorder stops the trace from user space, some ten microseconds later",
                   "needs Linux 6.13");
}

static void add_paranoid(struct doctor *d)
{
    int level = rec_perf_paranoid();
    bool free_hand = rec_has_capability(CAP_PERFMON) || rec_has_capability(CAP_SYS_ADMIN);

    if (level == -2)
        doctor_add(d, "perf.paranoid", "perf events", DOCTOR_NO, "a kernel with CONFIG_PERF_EVENTS=y",
                   "there is no /proc/sys/kernel/perf_event_paranoid");
    else if (free_hand || level <= -1)
        doctor_add(d, "perf.paranoid", "perf events", DOCTOR_YES, NULL,
                   "everything (perf_event_paranoid is %d)", level);
    else if (level <= 2)
        doctor_add(d, "perf.paranoid", "perf events", DOCTOR_YES, NULL,
                   "your own processes%s (perf_event_paranoid is %d)",
                   level <= 1 ? ", kernel code too" : ", user code only", level);
    else
        doctor_add(d, "perf.paranoid", "perf events", DOCTOR_NO,
                   "sysctl kernel.perf_event_paranoid=2, or run as root or with CAP_PERFMON",
                   "not for this user (perf_event_paranoid is %d)", level);
}

static void add_locked_memory(struct doctor *d)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_mlock_kb", "re");
    struct rlimit l;
    long kb = 0;
    char limit[24] = "unlimited";
    struct st_error err = {0};

    if (f && fscanf(f, "%ld", &kb) != 1)
        kb = 0;
    if (f)
        fclose(f);
    if (getrlimit(RLIMIT_MEMLOCK, &l))
        return;
    if (l.rlim_cur != RLIM_INFINITY)
        st_format_size(l.rlim_cur, limit, sizeof(limit));
    if (rec_has_capability(CAP_IPC_LOCK))
        snprintf(limit, sizeof(limit), "unlimited");
    if (rec_perf_ring_probe(&err)) /* or no event at all, which arm says in the same words */
        doctor_refusal(d, "perf.ring", "a ring of perf events", &err);
    doctor_add(d, "perf.mlock", "locked memory for rings", DOCTOR_INFO, NULL,
               "%s a process, and %ld KiB a CPU and user", limit, kb);
}

static void add_capabilities(struct doctor *d)
{
    static const struct {
        int cap;

        const char *name;
    } wanted[] = {
        {CAP_PERFMON, "CAP_PERFMON"},           {CAP_BPF, "CAP_BPF"},
        {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},     {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
        {CAP_IPC_LOCK, "CAP_IPC_LOCK"},         {CAP_SYSLOG, "CAP_SYSLOG"},
        {CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE"},
    };
    char has[256] = "", lacks[256] = "";

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        char *to = rec_has_capability(wanted[i].cap) ? has : lacks;

        if (*to)
            strncat(to, " ", sizeof(has) - strlen(to) - 1);
        strncat(to, wanted[i].name, sizeof(has) - strlen(to) - 1);
    }
    doctor_add(d, "capabilities", "capabilities", DOCTOR_INFO, NULL, "has: %s; lacks: %s",
               *has ? has : "none", *lacks ? lacks : "none");
}

static void add_tracefs(struct doctor *d)
{
    struct st_error err = {0};

    if (!trg_check_tracefs(&err))
        doctor_add(d, "tracefs", "tracefs", DOCTOR_YES, NULL, "mounted and readable");
    else
        doctor_refusal(d, "tracefs", "tracefs", &err);
}

static void add_lockdown(struct doctor *d)
{
    const char *level = trg_lockdown();

    if (level)
        doctor_add(d, "lockdown", "kernel lockdown", DOCTOR_INFO, NULL, "%s%s", level,
                   strcmp(level, "integrity") ? "" : ", which forbids nothing that is needed");
    else
        doctor_add(d, "lockdown", "kernel lockdown", DOCTOR_INFO, NULL, "none");
}

static void add_ptrace(struct doctor *d)
{
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = 0;

    if (f && fscanf(f, "%d", &scope) != 1)
        scope = 0;
    if (f)
        fclose(f);
    if (rec_has_capability(CAP_SYS_PTRACE) && scope < 3)
        doctor_add(d, "ptrace", "ptrace", DOCTOR_YES, NULL, "every process");
    else if (scope == 0)
        doctor_add(d, "ptrace", "ptrace", DOCTOR_YES, NULL, "your own processes");
    else
        doctor_add(d, "ptrace", "ptrace", DOCTOR_NO,
                   "sysctl kernel.yama.ptrace_scope=0, or run as root; `-- COMMAND` works",
                   "only processes that this one starts (kernel.yama.ptrace_scope is %d)", scope);
}

static void add_kallsyms(struct doctor *d)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    unsigned long long first = 0;

    if (f && fscanf(f, "%llx", &first) != 1)
        first = 0;
    for (int i = 0; f && !first && i < 100; i++)
        if (fscanf(f, "%*[^\n]\n%llx", &first) != 1)
            break;
    if (f)
        fclose(f);
    if (first)
        doctor_add(d, "kallsyms", "names of kernel functions", DOCTOR_YES, NULL, "/proc/kallsyms tells them");
    else
        doctor_add(d, "kallsyms", "names of kernel functions", DOCTOR_NO,
                   "run as root, or with CAP_SYSLOG and kernel.kptr_restrict=1",
                   "/proc/kallsyms hides the addresses from this user");
}

void doctor_kernel(struct doctor *d)
{
    add_version(d);
    add_capabilities(d);
    add_paranoid(d);
    add_locked_memory(d);
    add_ptrace(d);
    add_tracefs(d);
    add_lockdown(d);
    add_kallsyms(d);
}
