/* How the snapshot came about: struct st_meta_record. */
#include "base/infile.h"
#include "base/vec.h"
#include "recorder/code/build_id.h"
#include "recorder/snapshot/snapshot_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST = 48 * 1024, /* bytes of strings in one record */
    MOST_PROGRAMS = 16
};

/* Strings that wait for their record. A failure sticks until snap_write_meta looks. */
struct pairs {
    struct snap *s;

    ST_VEC(char) text; /* the header's room, then the strings */

    int rc;

    struct st_error *err;
};

static void flush(struct pairs *p)
{
    struct st_meta_record head = {.magic = ST_META_MAGIC, .version = ST_STALL_VERSION};

    if (p->rc || p->text.n <= sizeof(head))
        return;
    head.n = (st_u16)(p->text.n - sizeof(head));
    memcpy(p->text.at, &head, sizeof(head));
    p->rc = snap_write_sample(p->s, SNAP_META, p->text.at, p->text.n, p->err);
    p->text.n = sizeof(head);
}

static void put(struct pairs *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct pairs *p, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    size_t len;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    len = strlen(line) + 1;
    if (p->text.n + len > MOST)
        flush(p);
    if (p->rc || st_vec_reserve(&p->text, len)) {
        p->rc = p->rc ? p->rc : st_nomem(p->err, "the snapshot's description");
        return;
    }
    memcpy(p->text.at + p->text.n, line, len);
    p->text.n += len;
}

static void put_target(struct pairs *p, const struct st_target *t)
{
    char pids[1024] = "";
    size_t at = 0, i;

    for (i = 0; i < t->npids && at < sizeof(pids) - 48; i++)
        at += (size_t)snprintf(pids + at, sizeof(pids) - at, "%s%d", i ? "," : "", t->pids[i]);
    if (i < t->npids)
        snprintf(pids + at, sizeof(pids) - at, " and %zu more", t->npids - i);
    switch (t->kind) {
    case ST_TARGET_COMM:
        put(p, "target=--comm %s (%s)", t->comm, pids);
        break;
    case ST_TARGET_CGROUP:
        if (t->container)
            put(p, "target=--container %s, cgroup %s (%s)", t->container, t->group.path, pids);
        else
            put(p, "target=--cgroup %s (%s)", t->group.path, pids);
        break;
    case ST_TARGET_ALL:
        put(p, "target=-a");
        break;
    case ST_TARGET_COMMAND:
        put(p, "target=-- %s", t->argv[0]);
        break;
    case ST_TARGET_PIDS:
    case ST_TARGET_NONE:
        put(p, "target=-p %s", pids);
        break;
    }
}

/* The build id of a process's program, whatever is known of its calls. */
static void put_build_id(struct pairs *p, pid_t pid)
{
    char path[64], text[2 * REC_BUILD_ID_MAX + 1];
    uint8_t id[REC_BUILD_ID_MAX];
    size_t size;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd < 0)
        return;
    size = rec_build_id_ask(&p->s->child, fd, NULL, 0, id);
    close(fd);
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    if (size)
        put(p, "build_id.%d=%s", pid, text);
}

/* The command line of a process as it is now (its title, where it sets one), and its program. */
static void put_program(struct pairs *p, pid_t pid)
{
    char path[64], text[512], exe[512];
    size_t n;
    ssize_t length;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    f = fopen(path, "re");
    n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (f)
        fclose(f);
    while (n && !text[n - 1])
        n--;
    for (size_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = ' ';
    text[n] = '\0';
    if (n)
        put(p, "command.%d=%s", pid, text);
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    length = readlink(path, exe, sizeof(exe) - 1);
    if (length > 0)
        put(p, "exe.%d=%.*s", pid, (int)length, exe);
    put_build_id(p, pid);
}

/* Of the process that stalled, and of those that were named. */
static void put_programs(struct pairs *p, const struct rec_snapshot *in)
{
    pid_t stalled = in->trigger ? (pid_t)in->fired->pid : 0;

    if (stalled)
        put_program(p, stalled);
    for (size_t i = 0; i < in->target->npids && i < MOST_PROGRAMS; i++)
        if (in->target->pids[i] != stalled)
            put_program(p, in->target->pids[i]);
}

static void put_trigger(struct pairs *p, const struct rec_snapshot *in)
{
    put(p, "reason=%s", in->reason);
    if (in->text)
        put(p, "text=%s", in->text);
    if (!in->trigger)
        return;
    put(p, "trigger=%s", in->trigger);
    put(p, "trigger_index=%u", in->fired->trigger);
    put(p, "trigger_seq=%" PRIu64, (uint64_t)in->fired->seq);
}

static void put_frames(struct pairs *p, const struct trg_frames *frames)
{
    if (!frames || !(frames->n + frames->waker_n))
        return;
    put(p, "runtime=%s", frames->runtime);
    for (size_t i = 0; i < frames->n; i++)
        put(p, "frame.%zu=%s", i, frames->text[i]);
    for (size_t i = 0; i < frames->waker_n; i++)
        put(p, "waker_frame.%zu=%s", i, frames->waker_text[i]);
}

static void put_capture(struct pairs *p, const struct rec_capture *c)
{
    put(p, "freeze_asked=%" PRIu64, c->how.asked_time);
    put(p, "freeze_done=%" PRIu64, c->how.done_time);
    put(p, "resumed=%" PRIu64, c->resumed);
    put(p, "in_kernel=%d", c->how.in_kernel);
    put(p, "wall_offset_ns=%" PRId64, c->moment.wall - (int64_t)c->moment.perf);
    put(p, "mono_offset_ns=%" PRId64, c->moment.mono - (int64_t)c->moment.perf);
    for (size_t i = 0; i < c->rings.n; i++) {
        const struct rec_ring *r = &c->rings.at[i];

        if (r->marks) {
            put(p, "marks.%u=cpu=%d since=%" PRIu64 " offset=%" PRIu64 " size=%zu", r->idx, r->cpu,
                r->first_time, r->offset, r->size[0]);
            continue;
        }
        put(p,
            "ring.%u=tid=%d cpu=%d since=%" PRIu64 " offset=%" PRIu64
            " size=%zu in_kernel=%d stopped=%" PRIu64,
            r->idx, r->tid, r->cpu, r->first_time, r->offset, r->size[0], r->in_kernel, r->stopped);
    }
}

static int by_value(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return x < y ? -1 : x > y;
}

typedef ST_VEC(pid_t) tids;

static int take_tid(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    const struct rec_sample_head *sample = (const struct rec_sample_head *)record;

    if (record->type != PERF_RECORD_SAMPLE || record->size < sizeof(*sample) || (pid_t)sample->tid <= 0)
        return 0;
    return st_vec_push((tids *)ctx, (pid_t)sample->tid) ? st_nomem(err, "the names of threads") : 0;
}

static void put_comm(struct pairs *p, pid_t tid)
{
    char path[32], name[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/comm", tid);
    f = fopen(path, "re");
    if (f && fgets(name, sizeof(name), f))
        name[strcspn(name, "\n")] = '\0';
    if (f)
        fclose(f);
    if (*name)
        put(p, "comm.%d=%s", tid, name);
}

/* The names of those that woke others, if they are still there: most are not of the target. */
static void put_wakers(struct pairs *p, const struct rec_capture *c)
{
    tids list = {0};

    for (size_t i = 0; i < c->rings.n && !p->rc; i++)
        if (c->rings.at[i].marks)
            p->rc = snap_each_record(&c->rings.at[i], take_tid, &list, p->err);
    if (list.n)
        qsort(list.at, list.n, sizeof(list.at[0]), by_value);
    for (size_t i = 0; i < list.n; i++)
        if (!i || list.at[i] != list.at[i - 1])
            put_comm(p, list.at[i]);
    st_vec_free(&list);
}

static void put_pauses(struct pairs *p, const struct rec_snapshot *in)
{
    for (size_t i = 0; i < in->npauses; i++)
        put(p, "pause.%zu=stopped=%" PRIu64 " done=%" PRIu64 " resumed=%" PRIu64, i, in->pauses[i].stopped,
            in->pauses[i].done, in->pauses[i].resumed);
}

static void put_gone(struct pairs *p, const struct rec_facts *facts)
{
    if (facts->ring_total)
        put(p, "ring_total=%" PRIu64, facts->ring_total);
    for (size_t i = 0; i < facts->gone.n; i++) {
        const struct rec_ring_gone *g = &facts->gone.at[i];

        put(p, "no_ring.%d=pid=%d since=%" PRIu64 " until=%" PRIu64, g->tid, g->pid, g->since, g->until);
    }
}

/* What was read of them is no record of the kernel's, so it is not put among those. */
static void put_away(struct pairs *p, const struct rec_snapshot *in)
{
    const struct rec_moment *m = &in->capture->moment;

    for (size_t i = 0; i < in->naway; i++) {
        const struct rec_away *a = &in->away[i];

        put(p, "waiting.%d=pid=%d time=%" PRIu64 " state=%c syscall=%d", a->tid, a->pid,
            a->time - (uint64_t)m->mono + m->perf, a->state, a->syscall);
    }
}

static void put_named(struct pairs *p, const char *key, const char *value)
{
    if (*value)
        put(p, "%s=%s", key, value);
}

static void put_missing(struct pairs *p, const struct rec_code_files *code)
{
    for (size_t i = 0; i < code->left_out.n; i++)
        put(p, "uncopied.%d=%s", code->left_out.at[i].pid, code->left_out.at[i].why);
    for (size_t i = 0; i < code->unnamed.n; i++)
        put(p, "unnamed.%d=%s", code->unnamed.at[i].pid, code->unnamed.at[i].why);
}

int snap_write_meta(struct snap *s, struct st_error *err)
{
    static const struct st_meta_record room;
    const struct rec_snapshot *in = s->in;
    const struct rec_facts *facts = in->facts;
    struct pairs p = {.s = s, .err = err};

    if (st_vec_reserve(&p.text, MOST + 1))
        return st_nomem(err, "the snapshot's description");
    p.text.n = sizeof(room);
    put(&p, "version=%s", ST_VERSION);
    put_trigger(&p, in);
    put_frames(&p, in->frames);
    put(&p, "source=%s", facts->source);
    put(&p, "source_text=%s", in->source_text);
    put_target(&p, in->target);
    put_programs(&p, in);
    put(&p, "armed=%" PRIu64, in->armed);
    put_capture(&p, in->capture);
    put_pauses(&p, in);
    put_gone(&p, facts);
    put_away(&p, in);
    put_named(&p, "unseen_cpus", facts->unseen_cpus);
    put_named(&p, "unmarked_cpus", facts->unmarked_cpus);
    put_named(&p, "left_out", facts->left_out);
    put_wakers(&p, in->capture);
    put_missing(&p, &s->code);
    if (facts->sideband.events_dropped)
        put(&p, "switches_since=%" PRIu64, facts->sideband.events_dropped);
    if (facts->sideband.samples_dropped)
        put(&p, "stalls_since=%" PRIu64, facts->sideband.samples_dropped);
    if (in->marks_since)
        put(&p, "marks_since=%" PRIu64, in->marks_since);
    put(&p, "traps=%u", in->traps.fired);
    put(&p, "traps_dropped=%u", in->traps.dropped);
    put(&p, "stalls_without_trap=%u", in->traps.without);
    put(&p, "lost_events=%" PRIu64, in->lost_events);
    for (size_t i = 0; i < in->nwarnings; i++)
        put(&p, "warning=%s", in->warnings[i]);
    flush(&p);
    st_vec_free(&p.text);
    return p.rc;
}
