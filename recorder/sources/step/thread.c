/* The threads and processes that are traced. */
#include "recorder/sources/step/helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step_thread *step_thread_find(struct step_helper *h, pid_t tid)
{
    struct step_thread *t = h->last;

    if (t && t->tid == tid)
        return t;
    HASH_FIND(hh, h->threads, &tid, sizeof(tid), t);
    if (t)
        h->last = t;
    return t;
}

/* Its process, and that process's parent. */
static pid_t process_of(pid_t tid, pid_t *parent)
{
    char path[64], line[128];
    pid_t pid = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", tid);
    f = fopen(path, "re");
    if (!f)
        return -1;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "Tgid: %d", &pid) != 1 && sscanf(line, "PPid: %d", parent) == 1)
            break;
    fclose(f);
    return pid;
}

/* What a process ignores its children ignore. */
static bool ignores_sigtrap(struct step_helper *h, pid_t pid)
{
    struct step_proc *p;

    HASH_FIND(hh, h->procs, &pid, sizeof(pid), p);
    return p && p->sigtrap_ignored;
}

static int add_proc(struct step_helper *h, pid_t tid, struct step_proc **proc, struct st_error *err)
{
    pid_t parent = 0, pid = process_of(tid, &parent);
    struct step_proc *p;
    int rc;

    if (pid < 0)
        return st_fail(err, ST_EFAIL, "thread %d has ended", tid);
    HASH_FIND(hh, h->procs, &pid, sizeof(pid), p);
    if (!p) {
        p = calloc(1, sizeof(*p));
        if (!p)
            return st_nomem(err, "a process");
        rc = step_code_open(&p->code, tid, err);
        if (rc) {
            free(p);
            return rc;
        }
        p->pid = pid;
        p->sigtrap_ignored = ignores_sigtrap(h, parent);
        HASH_ADD(hh, h->procs, pid, sizeof(p->pid), p);
        if (!p->hh.tbl) {
            step_code_close(&p->code);
            free(p);
            return st_nomem(err, "a process");
        }
    }
    p->threads++;
    *proc = p;
    return 0;
}

static void put_proc(struct step_helper *h, struct step_proc *p)
{
    if (--p->threads)
        return;
    HASH_DEL(h->procs, p);
    step_code_close(&p->code);
    free(p);
}

int step_thread_add(struct step_helper *h, pid_t tid, struct step_thread **thread, struct st_error *err)
{
    struct step_thread *t = calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return st_nomem(err, "a thread");
    rc = add_proc(h, tid, &t->proc, err);
    if (rc) {
        free(t);
        return rc;
    }
    t->tid = tid;
    t->mode = PTENC_MODE_64;
    t->remade = -1;
    t->nr = -1;
    t->switches.fd = -1;
    HASH_ADD(hh, h->threads, tid, sizeof(t->tid), t);
    if (!t->hh.tbl) {
        put_proc(h, t->proc);
        free(t);
        return st_nomem(err, "a thread");
    }
    h->shared->live++;
    *thread = t;
    return 0;
}

void step_thread_remove(struct step_helper *h, struct step_thread *t)
{
    if (t->slot) {
        step_leave(h, t);
        step_switches_collect(&t->switches, t->slot, false);
        step_slot_end(t->slot, step_clock_now(&h->clock));
    }
    step_switches_close(&t->switches);
    HASH_DEL(h->threads, t);
    put_proc(h, t->proc);
    if (h->last == t)
        h->last = NULL;
    free(t);
    h->shared->live--;
}

void step_thread_record(struct step_helper *h, struct step_thread *t)
{
    t->slot = step_slot_take(h->shared, t->proc->pid, t->tid, step_clock_now(&h->clock));
    if (!t->slot) {
        h->shared->unrecorded++;
        return;
    }
    t->recording = true;
    t->remade = -1;
    ptenc_init(&t->enc, &t->slot->ring, &h->encoding);
    step_switches_open(&t->switches, t->tid);
    step_sigtrap_begin(t);
}

/* The thread that called exec became its process's leader; the leader that was is gone without a word. */
static void take_over(struct step_helper *h, struct step_thread *t, struct step_thread *former)
{
    step_leave(h, t);
    step_switches_close(&t->switches);
    t->switches = former->switches;
    former->switches = (struct step_switches){.fd = -1};
    t->run = former->run;
    t->nr = former->nr;
    t->at_restart = false;
    t->remade = -1;
    step_thread_remove(h, former);
}

void step_thread_exec(struct step_helper *h, struct step_thread *t, pid_t former)
{
    struct step_thread *caller = former == t->tid ? NULL : step_thread_find(h, former);

    if (caller)
        take_over(h, t, caller);
    step_code_close(&t->proc->code);
    if (step_code_open(&t->proc->code, t->tid, NULL))
        t->proc->code.memory = -1;
    t->proc->nsequences = 0;
    t->proc->rseq_watch = 0;
    t->rseq = 0;
    t->own_tf = false;
    t->break_set = false;
    t->sigtrap_blocked = false;
}
