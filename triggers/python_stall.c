/* The Python frames of a stall. */
#include "triggers/python_stall.h"
#include "triggers/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool trg_python_watch(struct bpf_map *pythons, pid_t pid, struct trg_python *python)
{
    uint32_t key = (uint32_t)pid;

    if (!trg_python_find(pid, python))
        return false;
    bpf_map__update_elem(pythons, &key, sizeof(key), &python->target, sizeof(python->target), BPF_ANY);
    return true;
}

/* The id by which the thread knows itself: in a container it is another one than ours. */
static pid_t native_id(pid_t pid, pid_t tid)
{
    char path[64], line[256];
    pid_t id = tid;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "NSpid:", 6)) {
            const char *last = strrchr(line, '\t');

            if (last && sscanf(last, "%d", &id) != 1)
                id = tid;
            break;
        }
    if (f)
        fclose(f);
    return id;
}

bool trg_python_add(const struct trg_python *python, struct st_stall_record *r)
{
    struct trg_python_frame frames[PYTHON_FRAMES];
    size_t n = 0, begin = r->ustack_n;
    int memory = trg_memory_open((pid_t)r->pid);

    if (memory < 0)
        return false;
    n = trg_python_frames(memory, python, native_id((pid_t)r->pid, (pid_t)r->tid), frames);
    close(memory);
    if (!n)
        return false;
    if (begin > PYTHON_LAST_BEGIN)
        begin = PYTHON_LAST_BEGIN;
    r->ustack[begin] = ST_STALL_PYTHON_FRAMES;
    memcpy(r->ustack + begin + 1, frames, n * sizeof(frames[0]));
    r->ustack_n = (uint16_t)(begin + 1 + 2 * n);
    return true;
}

/* Where a mark is in the user stack; its end where it is not. */
static unsigned find_mark(const struct st_stall_record *r, uint64_t mark)
{
    unsigned at = 0;

    while (at < r->ustack_n && r->ustack[at] != mark)
        at++;
    return at;
}

/* The pairs between the mark at `at` and `end` as texts. Returns how many. */
static size_t name_frames(pid_t pid, const struct st_stall_record *r, unsigned at, unsigned end,
                          char (*texts)[TRG_FRAME_TEXT], struct trg_frames *frames)
{
    struct trg_python python;
    int memory = at < end && trg_python_find(pid, &python) ? trg_memory_open(pid) : -1;
    size_t n = 0;

    if (memory < 0)
        return 0;
    snprintf(frames->runtime, sizeof(frames->runtime), "Python %u.%u.%u", python.version >> 24,
             python.version >> 16 & 0xff, python.version >> 8 & 0xff);
    for (at++; at + 1 < end && n < TRG_FRAMES; at += 2) {
        struct trg_python_frame frame = {r->ustack[at], r->ustack[at + 1]};

        if (!frame.code)
            continue;
        if (!trg_python_text(memory, &python, &frame, texts[n], sizeof(texts[n])))
            break;
        n++;
    }
    close(memory);
    return n;
}

void trg_python_take(struct st_stall_record *r, struct trg_frames *frames)
{
    unsigned end = r->ustack_n, own = find_mark(r, ST_STALL_PYTHON_FRAMES),
             waker = find_mark(r, ST_STALL_WAKER_PYTHON_FRAMES);

    frames->seq = r->seq;
    r->ustack_n = (uint16_t)(own < waker ? own : waker);
    frames->waker_n = name_frames((pid_t)r->waker_pid, r, waker, end, frames->waker_text, frames);
    frames->n = name_frames((pid_t)r->pid, r, own, waker, frames->text, frames);
}
