/* syscall: its BPF programs and its sentence. */
#include "base/syscalls.h"
#include "triggers/kit.h"
#include "triggers/record_text.h"
#include "triggers/timeout_asked.h"
#include "triggers/unseen.h"

#include "triggers/syscall.skel.h"

#include <string.h>

/* Those whose return value, where it is no error, is a number of bytes. */
static const char *const moves_bytes[] = {
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "sendfile",
    "splice",
    "vmsplice",
    "tee",
    "copy_file_range",
    "process_vm_readv",
    "process_vm_writev",
    "getrandom",
};

static int take(struct trg_state *s, struct st_error *err)
{
    const char *only = s->how.spec->options->name;
    struct syscall_bpf *bpf = syscall_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    s->pythons = bpf->maps.pythons;
    if (s->how.config->measure_only) {
        TRG_NO_WAKERS(bpf);
        bpf_program__set_autoload(bpf->progs.span_waking, false);
    }
    bpf->rodata->uring_told =
        trg_choose_uring(s, bpf->progs.uring_submit, bpf->progs.uring_complete,
                         *only ? !strcmp(only, "io_uring_enter") : s->how.spec->options->count_idle);
    bpf->rodata->real_offset = trg_real_offset();
    bpf->rodata->only = *only ? st_syscall_number(only, false) : -1;
    bpf_program__set_autoload(bpf->progs.syscall_other_enter, *only);
    bpf_program__set_autoload(bpf->progs.syscall_other_exit, *only);
    for (size_t i = 0; i < sizeof(moves_bytes) / sizeof(moves_bytes[0]); i++) {
        int number = st_syscall_number(moves_bytes[i], false);

        ((uint64_t *)bpf->rodata->moves_bytes)[number / 64] |= 1ull << (number % 64);
    }
    return 0;
}

static int syscall_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static void stop_counting(struct syscall_bpf *bpf)
{
    bpf_link__destroy(bpf->links.syscall_other_enter);
    bpf_link__destroy(bpf->links.syscall_other_exit);
    bpf->links.syscall_other_enter = bpf->links.syscall_other_exit = NULL;
}

static bool unseen(struct trg_state *s, char *text, size_t size)
{
    struct syscall_bpf *bpf = s->skeleton;

    if (!bpf->links.syscall_other_enter)
        return false;
    if (bpf->bss->seen) {
        stop_counting(bpf);
        return false;
    }
    trg_unseen_call(s->how.spec->options->name, (const void *)bpf->bss->calls, text, size);
    return true;
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    trg_put(&o, "was");
    trg_put_time(&o, r);
    trg_put_syscall(&o, r);
    trg_put_attribute(&o, r, "ret", " (returned ", ")");
    trg_put_attribute(&o, r, "io_uring", " for ", "");
    trg_put_waker(&o, r, name, ctx);
}

static bool set_name(struct trg_options *o, const char *word)
{
    strncpy(o->name, word, TRG_NAME - 1);
    return st_syscall_number(word, false) >= 0;
}

static const struct trg_name what = {false, "the name of a system call", set_name, st_syscall_names};

static const struct trg_key keys[] = {TRG_KEY_IDLE_LIST, TRG_KEY_IF_CALL, TRG_KEY_END};

const struct trg_kind trg_syscall = {
    .name = "syscall",
    .record_kind = ST_STALL_SYSCALL,
    .example = "syscall:fsync>5ms",
    .measures = "time in a system call",
    .takes = &what,
    .keys = keys,
    .open = syscall_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .unseen = unseen,
    .unseen_at_once = true,
    .describe = describe,
};
