/* How threads waited as the snapshot was made: the recorder read it from /proc, where no record tells it. */
#include "base/bisect.h"
#include "base/syscalls.h"
#include "base/task_state.h"
#include "decoder/model/model_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct waiting {
    int32_t pid, tid;

    uint64_t time;

    char state; /* as in /proc/PID/stat */

    int32_t syscall; /* -1: none */
};

static bool parse(const struct dec_meta *meta, struct waiting *w)
{
    return !strncmp(meta->text, "waiting.", 8) &&
           sscanf(meta->text,
                  "waiting.%" SCNd32 "=pid=%" SCNd32 " time=%" SCNu64 " state=%c syscall=%" SCNd32, &w->tid,
                  &w->pid, &w->time, &w->state, &w->syscall) == 5;
}

/* In the words that the context switches' states have. NULL: it does not wait. */
static const char *state_text(char state)
{
    static const struct {
        char letter;

        uint32_t bits; /* base/task_state.h */
    } states[] = {{'S', 0x1}, {'D', 0x2}, {'T', 0x4}, {'t', 0x8}, {'P', 0x40}, {'I', 0x400}};
    char unused[32];

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (states[i].letter == state)
            return st_task_state(states[i].bits, unused, sizeof(unused));
    return NULL;
}

/* Whether the context switches do not say otherwise. */
static bool was_off(const struct dec_thread *t, uint64_t time)
{
    size_t i = st_bisect(i, t->offcpu.n, t->offcpu.at[i].start <= time);

    if (!t->offcpu.n)
        return !t->slices.n;
    return i && t->offcpu.at[i - 1].end >= time && !t->offcpu.at[i - 1].preempted;
}

static int add(struct dec_model *m, const struct waiting *w)
{
    /* It may have been read behind the last record: nothing happened in between. */
    uint64_t time = w->time < m->sb->last ? w->time : m->sb->last;
    const struct dec_thread *t = dec_sideband_thread(m->sb, w->tid, -1, time);
    struct model_mark mark = {.thread = t, .cpu = -1, .time = time, .name = "waiting"};
    const char *state = state_text(w->state);
    char call[48];

    if (!state || time < m->sb->first || !t || t->process->pid != w->pid || !was_off(t, time))
        return 0;
    snprintf(mark.detail, sizeof(mark.detail), "%s%s%s", state, w->syscall >= 0 ? " in " : "",
             w->syscall >= 0
                 ? st_syscall_name(w->syscall, dec_process_is_narrow(t->process, time), call, sizeof(call))
                 : "");
    return st_vec_push(&m->marks, mark) ? -1 : 0;
}

int model_waiting(struct dec_model *m)
{
    struct waiting w;

    for (size_t i = 0; i < m->sb->meta.n; i++)
        if (parse(&m->sb->meta.at[i], &w) && add(m, &w))
            return -1;
    return 0;
}
