/* Each is tried with a program of a few instructions, or looked up in the kernel's BTF: distributions have
 * taken much of BPF into older kernels, and the version tells little. */
#include "triggers/needs.h"
#include "triggers/places.h"
#include "triggers/privilege.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* In the order of the kernels that brought them. */
static const struct trg_need needs[] = {
    {"bpf.places", "per-CPU variables in BTF", "per-CPU variables in its BTF", NULL, 0},
    {"bpf.read", "BPF: reads of kernel memory", "reads of kernel memory by BPF programs", "5.5",
     BPF_FUNC_probe_read_kernel},
    {"bpf.task", "BPF: the current task", "bpf_get_current_task_btf()", "5.11",
     BPF_FUNC_get_current_task_btf},
    {"bpf.atomics", "BPF: atomic operations", "atomic operations of BPF", "5.12", 0},
    {"bpf.storage", "BPF: task storage", "task storage for BPF programs on tracepoints", "5.12",
     BPF_FUNC_task_storage_get},
    {"bpf.walk", "BPF: walks over maps", "bpf_for_each_map_elem()", "5.13", BPF_FUNC_for_each_map_elem},
    {"bpf.text", "BPF: formatted text", "bpf_snprintf()", "5.13", BPF_FUNC_snprintf},
    {"bpf.timer", "BPF timers", "BPF timers", "5.15", BPF_FUNC_timer_init},
    {"bpf.registers", "BPF: user registers of a task", "bpf_task_pt_regs()", "5.15", BPF_FUNC_task_pt_regs},
};

enum { NEEDS = sizeof(needs) / sizeof(needs[0]) };

static bool loads(const struct bpf_insn *code, size_t n)
{
    int prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "st_probe", "GPL", code, n, NULL);

    if (prog >= 0)
        close(prog);
    return prog >= 0;
}

/* *(u64 *)(r10 - 8) = 0; r0 = 1; r0 = atomic_fetch_add((u64 *)(r10 - 8), r0); exit */
static bool has_atomics(void)
{
    static const struct bpf_insn code[] = {
        {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
        {.code = BPF_STX | BPF_ATOMIC | BPF_DW,
         .dst_reg = BPF_REG_10,
         .src_reg = BPF_REG_0,
         .off = -8,
         .imm = BPF_ADD | BPF_FETCH},
        {.code = BPF_JMP | BPF_EXIT},
    };

    return loads(code, sizeof(code) / sizeof(code[0]));
}

static bool has(const struct trg_need *need)
{
    struct trg_places places;

    if (need->helper)
        return libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, (enum bpf_func_id)need->helper, NULL) >
               0;
    if (!strcmp(need->key, "bpf.atomics"))
        return has_atomics();
    return !trg_find_places(&places, NULL);
}

void trg_each_need(trg_need_fn *fn, void *ctx)
{
    trg_hear_libbpf();
    for (size_t i = 0; i < NEEDS; i++)
        fn(ctx, &needs[i], has(&needs[i]));
}

const char *trg_lockdown(void)
{
    FILE *f = fopen("/sys/kernel/security/lockdown", "re");
    char modes[128] = "";

    if (f && !fgets(modes, sizeof(modes), f))
        modes[0] = '\0';
    if (f)
        fclose(f);
    if (!f && !libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_FUNC_probe_read_kernel, NULL))
        return "confidentiality"; /* securityfs is not mounted: nothing else takes that away */
    return strstr(modes, "[confidentiality]") ? "confidentiality"
           : strstr(modes, "[integrity]")     ? "integrity"
                                              : NULL;
}

struct lacking {
    char list[512];

    const char *since; /* of the last */
};

static void add_lacking(void *ctx, const struct trg_need *need, bool there)
{
    struct lacking *l = ctx;
    size_t used = strlen(l->list);

    if (there)
        return;
    snprintf(l->list + used, sizeof(l->list) - used, "%s%s%s%s%s", used ? ", " : "", need->what,
             need->since ? " (Linux " : "", need->since ? need->since : "", need->since ? ")" : "");
    if (need->since)
        l->since = need->since;
}

static int hint(const struct lacking *l, struct st_error *err)
{
    const char *lockdown = trg_lockdown();

    if (lockdown && !strcmp(lockdown, "confidentiality"))
        return st_hint(
            err,
            "kernel lockdown is at confidentiality, which forbids that: boot with lockdown=integrity, or "
            "without; Ctrl-C, SIGUSR2 and `snap` take snapshots without --on");
    return st_hint(err,
                   "%s%s%sbpf:FILE.o and bpftrace:FILE do without; Ctrl-C, SIGUSR2 and `snap` take snapshots "
                   "without --on",
                   l->since ? "Linux " : "", l->since ? l->since : "",
                   l->since ? " or newer has them; " : "");
}

int trg_check_needs(struct st_error *err)
{
    struct lacking l = {0};
    struct utsname u = {0};

    trg_each_need(add_lacking, &l);
    if (!*l.list)
        return 0;
    uname(&u);
    st_fail(err, ST_ECANNOT, "--on needs what this kernel (%s) lacks: %s", u.release, l.list);
    return hint(&l, err);
}

bool trg_has_btf_tracepoint(const char *name)
{
    struct btf *btf = btf__load_vmlinux_btf();
    char type[128];
    bool has;

    snprintf(type, sizeof(type), "btf_trace_%s", name);
    has = btf && btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
    btf__free(btf);
    return has;
}

unsigned trg_tracepoint_arguments(const char *name)
{
    struct btf *btf = btf__load_vmlinux_btf();
    const struct btf_type *t = NULL;
    char type[128];
    unsigned n = 0;
    int id;

    snprintf(type, sizeof(type), "btf_trace_%s", name);
    id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) : 0;
    if (id > 0)
        t = btf__type_by_id(btf, btf__type_by_id(btf, (unsigned)id)->type);
    if (t && btf_is_ptr(t))
        t = btf__type_by_id(btf, t->type);
    if (t && btf_is_func_proto(t) && btf_vlen(t))
        n = btf_vlen(t) - 1; /* the first is the tracepoint's own data */
    btf__free(btf);
    return n;
}
