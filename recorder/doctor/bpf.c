/* What BPF can do here, tried with programs of two instructions. */
#include "recorder/doctor/doctor.h"
#include "recorder/perf/event.h"
#include "recorder/perf/privileges.h"
#include "triggers/needs.h"
#include "triggers/privilege.h"
#include "triggers/trigger.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SWITCHES_FOR_NS 200000000

/* r0 = 0; exit */
static const struct bpf_insn nothing[] = {
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
    {.code = BPF_JMP | BPF_EXIT},
};

static int load(enum bpf_prog_type type, enum bpf_attach_type attach, const char *target)
{
    LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach);

    if (target) {
        int id = libbpf_find_vmlinux_btf_id(target, attach);

        if (id < 0)
            return id;
        opts.attach_btf_id = (unsigned)id;
    }
    return bpf_prog_load(type, "st_probe", "GPL", nothing, 2, &opts);
}

/* Loads, and attaches where that can fail for itself. 0, or a negative errno. */
static int try_tracing(enum bpf_attach_type attach, const char *target)
{
    int prog = load(BPF_PROG_TYPE_TRACING, attach, target);
    int link;

    if (prog < 0)
        return prog;
    link = bpf_raw_tracepoint_open(NULL, prog);
    close(prog);
    if (link < 0)
        return link;
    close(link);
    return 0;
}

static int try_load(enum bpf_prog_type type)
{
    int prog = load(type, 0, NULL);

    if (prog < 0)
        return prog;
    close(prog);
    return 0;
}

static bool pmu_number(const char *name, unsigned *type)
{
    char path[128];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
    f = fopen(path, "re");
    if (!f)
        return false;
    ok = fscanf(f, "%u", type) == 1;
    fclose(f);
    return ok;
}

/* A kprobe by perf_event_open(2), config1 = address of the name. */
static int try_kprobe(void)
{
    struct perf_event_attr attr = {.size = sizeof(attr)};
    unsigned type;
    int fd;

    if (!pmu_number("kprobe", &type))
        return -EOPNOTSUPP;
    attr.type = type;
    attr.config1 = (uint64_t)(uintptr_t) "do_nanosleep";
    fd = rec_perf_event(&attr, -1, 0);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* Whoever may and is refused all the same meets a kernel that cannot. */
static bool may_use_bpf(void)
{
    return rec_has_capability(CAP_SYS_ADMIN) ||
           (rec_has_capability(CAP_BPF) && rec_has_capability(CAP_PERFMON));
}

static void add_result(struct doctor *d, const char *key, const char *label, int rc, const char *use)
{
    char reason[128];

    if (!rc)
        doctor_add(d, key, label, DOCTOR_YES, NULL, "works; %s", use);
    else if ((rc == -EPERM || rc == -EACCES) && !may_use_bpf())
        doctor_add(d, key, label, DOCTOR_NO, "run as root, or with CAP_BPF and CAP_PERFMON",
                   "not permitted; %s", use);
    else if (rc == -EPERM || rc == -EOPNOTSUPP || rc == -ENOENT || rc == -ESRCH || rc == -524 /* ENOTSUPP */)
        doctor_add(d, key, label, DOCTOR_NO, NULL, "this kernel has none; %s", use);
    else
        doctor_add(d, key, label, DOCTOR_NO, NULL, "fails (%s); %s", strerror_r(-rc, reason, sizeof(reason)),
                   use);
}

static void add_btf(struct doctor *d)
{
    struct btf *btf = btf__load_vmlinux_btf();

    if (btf)
        doctor_add(d, "bpf.btf", "kernel BTF", DOCTOR_YES, NULL, "%u types", btf__type_cnt(btf));
    else
        doctor_add(d, "bpf.btf", "kernel BTF", DOCTOR_NO,
                   "triggers need a kernel with CONFIG_DEBUG_INFO_BTF=y",
                   "there is no /sys/kernel/btf/vmlinux");
    btf__free(btf);
}

static int be_silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    (void)level;
    (void)fmt;
    (void)ap;
    return 0;
}

/* By what triggers that may see something in several ways would see it here. */
static void add_hook(struct doctor *d, const char *key, const char *label, const char *hook, const char *use,
                     const char *without)
{
    if (hook)
        doctor_add(d, key, label, DOCTOR_YES, NULL, "by %s; %s", hook, use);
    else
        doctor_add(d, key, label, DOCTOR_NO, without, "by neither fentry nor kprobes; %s", use);
}

static void add_hooks(struct doctor *d)
{
    struct st_error err = {0};

    if (!may_use_bpf())
        return;
    add_hook(d, "hook.function", "kernel functions as triggers", trg_sees_kernel_functions(&err),
             "func:, call: and quiet:", "syscall: and tracepoint: work");
    add_hook(d, "hook.unsent", "unsent data as trigger", trg_sees_unsent_data(&err), "socket",
             "socket with side=unread works");
}

static void add_need(void *d, const struct trg_need *need, bool there)
{
    if (need->since)
        doctor_add(d, need->key, need->label, there ? DOCTOR_YES : DOCTOR_NO, NULL, "%s; Linux %s or newer",
                   there ? "works" : "this kernel has none", need->since);
    else
        doctor_add(d, need->key, need->label, there ? DOCTOR_YES : DOCTOR_NO, NULL, "%s",
                   there ? "they are there" : "they are not there");
}

/* In the words of arm's refusal. */
static void add_triggers(struct doctor *d)
{
    struct st_error err = {0};

    if (!trg_check_bpf(false, &err) && !trg_check_needs(&err)) {
        doctor_add(d, "triggers", "triggers", DOCTOR_YES, NULL,
                   "the kernel has all that their programs need");
        return;
    }
    doctor_refusal(d, "triggers", "triggers", &err);
}

/* Counted, not concluded: where none was left out in that time, one may be another time. */
static void add_switches(struct doctor *d)
{
    struct trg_switches seen;
    struct st_error err = {0};

    if (may_use_bpf() && !trg_count_switches(SWITCHES_FOR_NS, &seen, &err))
        doctor_add(d, "switches", "context switches", DOCTOR_INFO, NULL,
                   "%llu traced in 0.2 s, and %llu that this kernel did not trace: who woke a thread "
                   "is not known there",
                   (unsigned long long)seen.traced, (unsigned long long)seen.untraced);
}

void doctor_bpf(struct doctor *d)
{
    libbpf_print_fn_t before = libbpf_set_print(be_silent);
    unsigned type;

    add_btf(d);
    add_result(d, "bpf.tp_btf", "BPF on tracepoints (tp_btf)", try_tracing(BPF_TRACE_RAW_TP, "sched_switch"),
               "every trigger needs it");
    add_result(d, "bpf.fentry", "BPF on kernel functions (fentry)",
               try_tracing(BPF_TRACE_FENTRY, "do_nanosleep"), "triggers on kernel functions use it");
    add_result(d, "bpf.perf_event", "BPF on perf events", try_load(BPF_PROG_TYPE_PERF_EVENT),
               "uprobes and tracepoints use it");
    add_result(d, "kprobe", "kprobes", try_kprobe(), "the same, where fentry lacks");
    doctor_add(d, "uprobe", "uprobes", pmu_number("uprobe", &type) ? DOCTOR_YES : DOCTOR_NO, NULL,
               "%s; func:, call:, quiet: and usdt: of user code use them",
               pmu_number("uprobe", &type) ? "the kernel has them" : "this kernel was built without");
    if (may_use_bpf())
        trg_each_need(add_need, d);
    add_triggers(d);
    add_hooks(d);
    add_switches(d);
    libbpf_set_print(before);
}
