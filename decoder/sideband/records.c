/* What each kind of perf record says. Layouts: include/uapi/linux/perf_event.h, enum perf_event_type. */
#include "base/bisect.h"
#include "base/progress.h"
#include "decoder/sideband/sideband_impl.h"

#include "base/log.h"
#include "decoder/image/symbols.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mmap_record {
    struct perf_event_header header;

    uint32_t pid, tid;

    uint64_t address, length, pgoff;

    char name[];
};

struct mmap2_record {
    struct perf_event_header header;

    uint32_t pid, tid;

    uint64_t address, length, pgoff;

    uint8_t build_id_size; /* with PERF_RECORD_MISC_MMAP_BUILD_ID; else device and inode stand here */

    uint8_t pad[3];

    uint8_t build_id[20];

    uint32_t prot, flags;

    char name[];
};

struct comm_record {
    struct perf_event_header header;

    uint32_t pid, tid;

    char name[];
};

struct task_record { /* FORK, EXIT */
    struct perf_event_header header;

    uint32_t pid, ppid, tid, ptid;

    uint64_t time;
};

struct words_record { /* AUX, LOST, THROTTLE ... */
    struct perf_event_header header;

    uint64_t word[];
};

struct text_poke_record {
    struct perf_event_header header;

    uint64_t address;

    uint16_t old_len, new_len;

    uint8_t bytes[]; /* the old ones, then the new ones */
};

struct ksymbol_record {
    struct perf_event_header header;

    uint64_t address;

    uint32_t length;

    uint16_t type, flags;

    char name[];
};

struct ids_record { /* ITRACE_START */
    struct perf_event_header header;

    uint32_t pid, tid;
};

static int bad(const struct pd_record *r, const char *why, struct st_error *err)
{
    return st_fail(err, ST_EBADFILE, "%s: at offset 0x%" PRIx64 ": %s (%u): %s", r->file, r->offset,
                   pd_record_name(r->header->type), r->header->type, why);
}

/* Whether the record has its fixed part and, from `name` on, a string that ends within it. */
static int fits(const struct pd_record *r, size_t fixed, bool name, struct st_error *err)
{
    size_t size = r->header->size;

    if (size < fixed)
        return bad(r, "too short for its fields", err);
    if (name && strnlen((const char *)r->header + fixed, size - fixed) == size - fixed)
        return bad(r, "its name does not end", err);
    return 0;
}

static const struct pd_build_id *find_build_id(const struct sb_context *c, const char *path)
{
    size_t first = st_bisect(i, c->build_ids.n, strcmp(c->build_ids.at[i].filename, path) < 0);

    return first < c->build_ids.n && !strcmp(c->build_ids.at[first].filename, path) ? &c->build_ids.at[first]
                                                                                    : NULL;
}

static int map(struct sb_context *c, const struct pd_record *r, uint64_t time, struct dec_image_id *id,
               const struct mmap_record *m, struct st_error *err)
{
    bool kernel = (r->header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    struct dec_process *process = kernel ? NULL : sb_process(c, (int32_t)m->pid);
    struct dec_image *image;
    int rc;

    if (kernel && c->has_kcore)
        return 0;
    if (!kernel && !process)
        return st_nomem(err, "a process");
    if (process && !strcmp(id->path, "[vdso]")) {
        if (st_vec_push(&process->abis, (struct dec_abi){time, sb_is_narrow(m->address)}))
            return st_nomem(err, "a process");
        image = sb_find_vdso(c, (int32_t)m->pid, m->address);
        if (image)
            return dec_space_map(process->space, time, m->address, m->length, m->pgoff, image, err);
        if (sb_is_narrow(m->address))
            id->path = "[vdso32]"; /* perf's name of it: never this program's own */
    }
    id->kernel = kernel;
    id->pid = (int32_t)m->pid;
    if (!id->build_id_size && find_build_id(c, id->path)) {
        id->build_id = find_build_id(c, id->path)->id;
        id->build_id_size = find_build_id(c, id->path)->id_size;
    }
    rc = dec_images_get(c->images, id, &image, err);
    if (!rc && kernel)
        rc = sb_name_running_kernel(c, &(struct sb_kernel_map){id->path, m->address, m->pgoff, image}, err);
    return rc ? rc
              : dec_space_map(kernel ? c->sb->kernel : process->space, time, m->address, m->length, m->pgoff,
                              image, err);
}

static int apply_mmap(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct mmap_record *m = (const void *)r->header;
    struct dec_image_id id = {.path = m->name};
    int rc = fits(r, sizeof(*m), true, err);

    return rc ? rc : map(c, r, time, &id, m, err);
}

static int apply_mmap2(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct mmap2_record *m = (const void *)r->header;
    struct dec_image_id id = {.path = m->name};
    int rc = fits(r, sizeof(*m), true, err);

    if (rc || r->header->misc & PERF_RECORD_MISC_MMAP_DATA)
        return rc; /* no code */
    if (r->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        id.build_id = m->build_id;
        id.build_id_size = m->build_id_size <= sizeof(m->build_id) ? m->build_id_size : sizeof(m->build_id);
    }
    return map(c, r, time, &id, (const struct mmap_record *)(const void *)m, err);
}

/* Whether it tells of the samples. */
static bool of_samples(const struct pd_record *r)
{
    return r->event && r->event->attr.sample_type & PERF_SAMPLE_CALLCHAIN &&
           sb_point_kind(r->event) != DEC_POINT_WAKING;
}

static bool of_marks(const struct pd_record *r)
{
    return r->event && sb_point_kind(r->event) == DEC_POINT_WAKING;
}

static int notice(struct sb_context *c, const struct pd_record *r, uint64_t time,
                  const struct dec_notice *what, struct st_error *err)
{
    struct dec_notice n = *what;

    n.time = time;
    n.of_samples = of_samples(r);
    n.of_marks = of_marks(r);
    n.tid = r->id.has & PERF_SAMPLE_TID ? (int32_t)r->id.tid : -1;
    n.cpu = r->id.has & PERF_SAMPLE_CPU ? (int32_t)r->id.cpu : -1;
    return st_vec_push(&c->sb->notices, n) ? st_nomem(err, "the side-band's notices") : 0;
}

static int apply_comm(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct comm_record *m = (const void *)r->header;
    struct dec_notice exec = {.name = "exec"};
    struct dec_thread *thread;
    int rc = fits(r, sizeof(*m), true, err);

    if (rc)
        return rc;
    thread = sb_thread(c, (int32_t)m->pid, (int32_t)m->tid, 0);
    if (!thread || sb_name(thread, time, m->name))
        return st_nomem(err, "a thread");
    if (!(r->header->misc & PERF_RECORD_MISC_COMM_EXEC))
        return 0;
    dec_space_exec(thread->process->space, time);
    if (st_vec_push(&thread->execs, time))
        return st_nomem(err, "a thread");
    snprintf(exec.detail, sizeof(exec.detail), "%s", m->name);
    return notice(c, r, time, &exec, err);
}

/* A new process has a copy of its parent's space, as far as that is known. */
static int new_process(struct sb_context *c, const struct task_record *m, uint64_t time, struct st_error *err)
{
    const struct dec_process *parent = sb_find_process(c->sb, (int32_t)m->ppid);
    struct dec_process *process = sb_new_process(c, (int32_t)m->pid, (int32_t)m->ppid, time);

    if (!process ||
        (parent && parent->abis.n && st_vec_push(&process->abis, parent->abis.at[parent->abis.n - 1])))
        return st_nomem(err, "a process");
    return parent ? dec_space_fork(process->space, parent->space, time, err) : 0;
}

/* A thread that was there before. With a number that one had which has ended, it is another. */
static int was_there(struct sb_context *c, const struct task_record *m, struct st_error *err)
{
    const struct dec_thread *old = sb_thread(c, (int32_t)m->pid, (int32_t)m->tid, 0);
    uint64_t since = old ? old->end : 0;

    if (old && since == UINT64_MAX)
        return 0;
    if (old && m->pid == m->tid && !sb_new_process(c, (int32_t)m->pid, (int32_t)m->ppid, since))
        old = NULL;
    return old && sb_new_thread(c, (int32_t)m->pid, (int32_t)m->tid, since) ? 0 : st_nomem(err, "a thread");
}

/* FORK records are made up for threads that were there before: by perf without a time, by our recorder with
 * that of its start, and for a process that came into the target later without a time inside. */
static int apply_fork(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct task_record *m = (const void *)r->header;
    const struct dec_thread *parent;
    struct dec_thread *thread;
    int rc = fits(r, sizeof(*m), false, err);

    if (rc)
        return rc;
    if (time <= c->sb->first)
        return sb_thread(c, (int32_t)m->pid, (int32_t)m->tid, 0) ? 0 : st_nomem(err, "a thread");
    if (!m->time)
        return was_there(c, m, err);
    parent = dec_sideband_thread(c->sb, (int32_t)m->ptid, -1, time);
    if (m->pid != m->ppid)
        rc = new_process(c, m, time, err);
    if (rc)
        return rc;
    thread = sb_new_thread(c, (int32_t)m->pid, (int32_t)m->tid, time);
    if (!thread || (parent && sb_name(thread, 0, dec_thread_name(parent, time))))
        return st_nomem(err, "a thread");
    return 0;
}

static int apply_exit(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct task_record *m = (const void *)r->header;
    struct dec_thread *thread;
    int rc = fits(r, sizeof(*m), false, err);

    if (rc)
        return rc;
    thread = sb_thread(c, (int32_t)m->pid, (int32_t)m->tid, 0);
    if (!thread)
        return st_nomem(err, "a thread");
    if (time)
        thread->end = time;
    return 0;
}

static int apply_itrace(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct ids_record *m = (const void *)r->header;
    struct dec_thread *thread;
    int rc = fits(r, sizeof(*m), false, err);

    if (rc || (int32_t)m->tid <= 0)
        return rc;
    thread = sb_thread(c, (int32_t)m->pid, (int32_t)m->tid, 0);
    if (!thread)
        return st_nomem(err, "a thread");
    if (!thread->traced)
        thread->traced_since = time;
    thread->traced = true;
    return 0;
}

static int apply_switch(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    bool out = r->header->misc & PERF_RECORD_MISC_SWITCH_OUT;
    bool preempted = r->header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    struct dec_thread *thread;

    if (!(r->id.has & PERF_SAMPLE_TID) || !time || (int32_t)r->id.tid < 0)
        return 0;
    thread = sb_thread(c, (int32_t)r->id.pid, (int32_t)r->id.tid,
                       r->id.has & PERF_SAMPLE_CPU ? (int32_t)r->id.cpu : 0);
    if (!thread ||
        sb_switch(c, thread, time, r->id.has & PERF_SAMPLE_CPU ? (int32_t)r->id.cpu : -1, out, preempted))
        return st_nomem(err, "the context switches");
    return 0;
}

static int apply_lost(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct words_record *m = (const void *)r->header;
    bool samples = r->header->type == PERF_RECORD_LOST_SAMPLES;
    struct dec_notice n = {.lost = true, .name = "lost"};
    const char *what = of_marks(r) ? "wake-ups" : samples || of_samples(r) ? "samples" : "side-band records";
    int rc = fits(r, sizeof(*m) + (samples ? 8 : 16), false, err);

    if (rc)
        return rc;
    snprintf(n.detail, sizeof(n.detail), "%" PRIu64 " %s did not fit into the kernel's buffer",
             samples ? m->word[0] : m->word[1], what);
    if (!samples && time && r->event && r->event->attr.context_switch && r->id.has & PERF_SAMPLE_CPU &&
        sb_lost_switches(c, time, (int32_t)r->id.cpu, &n.since))
        return st_nomem(err, "the context switches");
    return notice(c, r, time, &n, err);
}

static int apply_throttle(struct sb_context *c, const struct pd_record *r, uint64_t time,
                          struct st_error *err)
{
    struct dec_notice n = {.name = r->header->type == PERF_RECORD_THROTTLE ? "throttled" : "unthrottled"};

    return notice(c, r, time, &n, err);
}

/* Whenever the kernel's code was copied, it is right only for what no change tells of. */
static int apply_text_poke(struct sb_context *c, const struct pd_record *r, uint64_t time,
                           struct st_error *err)
{
    const struct text_poke_record *m = (const void *)r->header;

    if (!c->has_kcore || !time)
        return 0;
    return dec_space_patch(c->sb->kernel, time, m->address, (struct dec_code_bytes){m->bytes, m->old_len},
                           (struct dec_code_bytes){m->bytes + m->old_len, m->new_len}, err);
}

/* Code that the kernel made (a BPF program). Where the copy of the kernel does not hold it, it is a hole with
 * a name. */
static int apply_ksymbol(struct sb_context *c, const struct pd_record *r, uint64_t time, struct st_error *err)
{
    const struct ksymbol_record *m = (const void *)r->header;
    struct dec_image_id id = {.kernel = true, .pid = -1};
    struct dec_image *image;
    char path[PATH_MAX];
    int rc;

    if (!m->length || m->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER ||
        dec_space_find(c->sb->kernel, time, m->address))
        return 0;
    snprintf(path, sizeof(path), "[%.4000s]", m->name);
    id.path = path;
    rc = dec_images_get(c->images, &id, &image, err);
    if (!rc)
        rc = dec_image_add_symbol(image, 0, m->length, m->name, NULL, err);
    return rc ? rc : dec_space_map(c->sb->kernel, time, m->address, m->length, 0, image, err);
}

int sb_apply(struct sb_context *c, const struct sb_timed *t, struct st_error *err)
{
    const struct pd_record *r = &t->record;

    switch (r->header->type) {
    case PERF_RECORD_MMAP:
        return apply_mmap(c, r, t->time, err);
    case PERF_RECORD_MMAP2:
        return apply_mmap2(c, r, t->time, err);
    case PERF_RECORD_COMM:
        return apply_comm(c, r, t->time, err);
    case PERF_RECORD_FORK:
        return apply_fork(c, r, t->time, err);
    case PERF_RECORD_EXIT:
        return apply_exit(c, r, t->time, err);
    case PERF_RECORD_ITRACE_START:
        return apply_itrace(c, r, t->time, err);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return apply_switch(c, r, t->time, err);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        return apply_lost(c, r, t->time, err);
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        return apply_throttle(c, r, t->time, err);
    case PERF_RECORD_TEXT_POKE:
        return apply_text_poke(c, r, t->time, err);
    case PERF_RECORD_KSYMBOL:
        return apply_ksymbol(c, r, t->time, err);
    case PERF_RECORD_SAMPLE:
        return sb_stall_sample(c, r, err);
    default:
        return 0;
    }
}

/* A chunk of trace was written; a flag tells when bytes behind it were lost. */
static int collect_aux(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    const struct words_record *m = (const void *)r->header;
    struct dec_aux_loss loss = {.tid = -1, .cpu = -1};
    int rc = fits(r, sizeof(*m) + 24, false, err);

    if (rc || !(m->word[2] & (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL)))
        return rc;
    if (r->id.has & PERF_SAMPLE_TID)
        loss.tid = (int32_t)r->id.tid;
    if (r->id.has & PERF_SAMPLE_CPU)
        loss.cpu = (int32_t)r->id.cpu;
    loss.offset = m->word[0] + m->word[1];
    return st_vec_push(&c->losses, loss) ? st_nomem(err, "the trace's losses") : 0;
}

static const struct perf_event_attr *pt_attr(const struct sb_context *c, uint32_t type)
{
    for (size_t i = 0; i < pd_reader_nevents(c->reader); i++) {
        const struct pd_event *event = pd_reader_event(c->reader, i);

        if (event->attr.type == type)
            return &event->attr;
    }
    return NULL;
}

static int collect_info(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    const struct pd_auxtrace_info *m = (const void *)r->header;
    size_t n = (r->header->size - offsetof(struct pd_auxtrace_info, priv)) / 8;
    const struct perf_event_attr *attr;
    int rc = fits(r, sizeof(*m), false, err);

    if (rc)
        return rc;
    if (m->type != PD_AUXTRACE_INTEL_PT) {
        st_log_warn("%s: the trace in it is not Intel PT (type %u): it is left out", r->file, m->type);
        return 0;
    }
    attr = n > PD_PT_PMU_TYPE ? pt_attr(c, (uint32_t)m->priv[PD_PT_PMU_TYPE]) : NULL;
    if (!attr)
        return bad(r, "no event in the file is of the PMU that it names", err);
    dec_pt_config_from_perf(&c->sb->pt, m->priv, n, attr, pd_reader_string(c->reader, PD_FEAT_CPUID));
    c->sb->snapshot = n > PD_PT_SNAPSHOT_MODE && m->priv[PD_PT_SNAPSHOT_MODE];
    c->sb->inherited = attr->inherit;
    c->sb->has_pt = true;
    return 0;
}

/* A file whose events have lost their names: the records begin with a magic number of their own. */
static bool is_stall(const struct pd_record *r)
{
    if (!r->event)
        return false;
    if (!strcmp(r->event->name, ST_STALL_EVENT_NAME))
        return true;
    return !r->event->name[0] && r->event->attr.type == PERF_TYPE_SOFTWARE &&
           r->event->attr.config == PERF_COUNT_SW_BPF_OUTPUT;
}

static bool is_meta(const struct pd_record *r)
{
    return r->event && !strcmp(r->event->name, ST_META_EVENT_NAME);
}

static int keep(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    struct sb_timed t = {
        .time = r->id.has & PERF_SAMPLE_TIME ? r->id.time : 0, .order = c->timed.n, .record = *r};
    struct dec_sideband *sb = c->sb;

    if (t.time > INT64_MAX)
        return bad(r, "its time is no time", err);
    if (t.time && (!sb->first || t.time < sb->first))
        sb->first = t.time;
    if (t.time > sb->last)
        sb->last = t.time;
    return st_vec_push(&c->timed, t) ? st_nomem(err, "the side-band") : 0;
}

int sb_collect(void *context, const struct pd_record *r, struct st_error *err)
{
    struct sb_context *c = context;
    uint32_t type = r->header->type;

    st_progress_add(r->header->size);
    switch (type) {
    case PD_RECORD_AUXTRACE:
        return sb_auxtrace(c, r, err);
    case PD_RECORD_AUXTRACE_INFO:
        return collect_info(c, r, err);
    case PERF_RECORD_AUX:
        return collect_aux(c, r, err);
    case PERF_RECORD_SAMPLE:
        if (is_meta(r))
            return sb_meta_sample(c, r, err);
        if (is_stall(r))
            return keep(c, r, err);
        if (sb_point_kind(r->event) && sb_point(c, r, err))
            return err->code;
        c->sb->unchained += r->event && !(r->event->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
        return sb_is_sample(r) ? sb_sample(c, r, err) : 0;
    default:
        break;
    }
    if (type < PERF_RECORD_MAX)
        return keep(c, r, err);
    if (type < PD_RECORD_HEADER_ATTR || type > PD_RECORD_FINISHED_INIT)
        c->sb->skipped++;
    return 0;
}
