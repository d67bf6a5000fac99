/* Capabilities, BTF, and libbpf's complaints. */
#include "triggers/privilege.h"
#include "base/log.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INIT_PID_NS "pid:[4026531836]" /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

static char complaint[256];

/* The verifier's log, in one message: its last line before the statistics says what was wrong. */
static void keep_reason(const char *log)
{
    const char *end = strstr(log, "\nprocessed ");
    const char *start = end;

    while (start && start > log && start[-1] != '\n')
        start--;
    if (start)
        snprintf(complaint, sizeof(complaint), "%.*s", (int)(end - start), start);
}

static void hear_line(enum libbpf_print_level level, char *line)
{
    if (level == LIBBPF_WARN && strstr(line, "PROG LOAD LOG"))
        keep_reason(line);
    line[strcspn(line, "\n")] = '\0';
    if (level == LIBBPF_WARN && line[0] && !complaint[0])
        snprintf(complaint, sizeof(complaint), "%.*s", (int)sizeof(complaint) - 1, line);
    if (level != LIBBPF_DEBUG)
        st_log_debug("%s", line);
}

static int hear(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    char *line = NULL;

    if (vasprintf(&line, fmt, ap) < 0)
        return 0;
    hear_line(level, line);
    free(line);
    return 0;
}

void trg_hear_libbpf(void)
{
    complaint[0] = '\0';
    libbpf_set_print(hear);
}

int trg_bpf_failed(int rc, const char *what, struct st_error *err)
{
    int code =
        rc == -EPERM || rc == -EACCES || rc == -EOPNOTSUPP || rc == -ENOTSUP || rc == -EINVAL || rc == -ESRCH
            ? ST_ECANNOT
            : ST_EFAIL;

    if (rc == -ENOMEM)
        code = ST_ENOMEM;
    errno = -rc;
    if (rc == -ESRCH &&
        strstr(complaint,
               "kernel BTF")) { /* libbpf has lost the reason; that the file is there was seen before */
        st_fail(err, ST_EFAIL, "%s: cannot read /sys/kernel/btf/vmlinux", what);
        return st_hint(err, "memory or descriptors may have run out");
    }
    st_fail_errno(err, code, "%s", what);
    if (complaint[0])
        st_hint(err, "%s", complaint);
    if (rc == -EPERM)
        st_hint(err, "the capabilities are there, so a container, seccomp or kernel lockdown forbids it");
    return code;
}

static int effective_capabilities(uint64_t *to, struct st_error *err)
{
    unsigned long long caps = 0;
    char line[128];
    FILE *f = fopen("/proc/thread-self/status", "re");

    if (!f)
        return st_fail_errno(err, ST_EFAIL,
                             "cannot read this process's capabilities in /proc/thread-self/status");
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "CapEff: %llx", &caps) == 1)
            break;
    fclose(f);
    *to = caps;
    return 0;
}

static int check_capabilities(bool measure_only, struct st_error *err)
{
    bool bpf, perfmon;
    uint64_t caps = 0;
    int rc = effective_capabilities(&caps, err);

    if (rc)
        return rc;
    bpf = caps >> CAP_BPF & 1;
    perfmon = caps >> CAP_PERFMON & 1;
    if (caps >> CAP_SYS_ADMIN & 1 || (bpf && perfmon))
        return 0;
    st_fail(err, ST_ECANNOT, "--on needs BPF, and this process lacks %s%s%s", bpf ? "" : "CAP_BPF",
            bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
    return st_hint(err, measure_only ? "run it as root"
                                     : "run it as root, or without --on: Ctrl-C, SIGUSR2 and `snap` take "
                                       "snapshots too");
}

/* BPF sees the thread numbers of the initial name space; ours would be others. */
static int check_pid_namespace(struct st_error *err)
{
    char link[64];
    ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

    if (n < 0)
        return st_fail_errno(err, ST_ECANNOT, "cannot read /proc/self/ns/pid: is /proc mounted?");
    link[n] = '\0';
    if (!strcmp(link, INIT_PID_NS))
        return 0;
    st_fail(err, ST_ECANNOT,
            "--on does not work in a pid name space (a container): thread numbers differ in the kernel");
    return st_hint(err, "run stalltrap on the host, or in a container with --pid=host");
}

int trg_check_bpf(bool measure_only, struct st_error *err)
{
    int rc = check_capabilities(measure_only, err);

    if (rc)
        return rc;
    if (access("/sys/kernel/btf/vmlinux", R_OK))
        return st_fail_errno(
            err, ST_ECANNOT,
            "--on needs the kernel's type information (CONFIG_DEBUG_INFO_BTF): /sys/kernel/btf/vmlinux");
    return check_pid_namespace(err);
}
