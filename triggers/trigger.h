/* What fires. The recorder knows this header, never which kind is behind it. */
#ifndef ST_TRIGGERS_TRIGGER_H
#define ST_TRIGGERS_TRIGGER_H

#include "base/complete.h"
#include "base/error.h"
#include "base/stall_record.h"
#include "base/target.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct hist;
struct trg_set; /* all triggers of one `arm` or `watch` */

struct trg_config {
    const struct st_target *target; /* resolved; stays valid until close */

    pid_t command; /* the child of ST_TARGET_COMMAND, stopped before its exec; else 0 */

    uint64_t warm_up_ns; /* nothing fires so long after start (UINT64_MAX: before trg_hold); it is measured
                            all the same */

    bool calls_alone; /* waits at one return address are one place, however deep the stack */

    bool early; /* an announcement stops a trace at once: it is to come as early as it can, at some cost */

    bool measure_only; /* `watch`: histograms, nothing fires */

    bool marks; /* the set is of marks (trg_add_mark): their hits are records, and fire nothing */

    bool by_thread; /* a histogram a thread too */
};

/* Parses one --on text and adds it to the set (created when *set is NULL). ST_EUSAGE shows the text, a caret
 * under the place, and the nearest word. */
int trg_add(struct trg_set **set, const char *text, struct st_error *err);

/* The same for a --mark: a kind whose every hit counts, "tracepoint:CAT:NAME", "usdt:PATH:PROVIDER:NAME" or
 * "func:NAME", with if=; or "write:FD", what is written into a descriptor. A set holds either triggers or
 * marks. */
int trg_add_mark(struct trg_set **set, const char *text, struct st_error *err);

/* What may stand behind --on and --mark (base/complete.h). */
void trg_complete_word(struct st_completion *c);
void trg_complete_mark(struct st_completion *c);

size_t trg_count(const struct trg_set *set);

/* The text of trigger i as the user wrote it. */
const char *trg_text(const struct trg_set *set, size_t i);

/* Whether one of them compares a time with a threshold, or with the worst so far. */
bool trg_measures(const struct trg_set *set);

/* Loads the BPF programs; nothing is attached. ST_ECANNOT names the privilege or kernel feature that lacks.
 */
int trg_open(struct trg_set *set, const struct trg_config *config, struct st_error *err);

/* The attribute of the bpf-output event whose samples carry the stall records (PERF_COUNT_SW_BPF_OUTPUT,
 * sample_type IDENTIFIER|TID|TIME|CPU|RAW, wakeup_events 1). The recorder opens it on every CPU, maps and
 * drains the rings. */
void trg_output_attr(struct perf_event_attr *attr);

/* Tells the set the descriptor of that event on `cpu` (stays the caller's). */
int trg_set_output(struct trg_set *set, int cpu, int fd, struct st_error *err);

/* Attaches the programs: live when it returns. */
int trg_start(struct trg_set *set, struct st_error *err);

/* A process came into the target that waits for such (st_target_waits), after trg_start(). Those of a cgroup
 * are watched already, and of a name the first thread is: this takes care of the rest. A process that has
 * ended is no error. */
int trg_joined(struct trg_set *set, pid_t pid, struct st_error *err);

/* By what trigger i, started, sees its events, where there are several ways ("uprobe", "fentry"); NULL: there
 * is one. */
const char *trg_hook(const struct trg_set *set, size_t i);

/* By what this kernel lets triggers see its functions (func, call, quiet), and unsent data (socket):
 * "fentry", "kprobe", "tracepoint", the best there is. NULL: not at all, err says why. */
const char *trg_sees_kernel_functions(struct st_error *err);
const char *trg_sees_unsent_data(struct st_error *err);

struct trg_switches {
    uint64_t traced;

    uint64_t untraced; /* at least */
};

/* Counts the context switches of all CPUs for `ns`, sleeping often meanwhile, and those that the tracepoint
 * sched_switch does not tell. The kernels of some virtual machines leave some out, together with the wake-ups
 * before them: then a wait's waker is not known. ST_ECANNOT: no permission, or no such tracepoint in BTF. */
int trg_count_switches(uint64_t ns, struct trg_switches *switches, struct st_error *err);

/* Looks at a raw payload that came out of the rings. Returns 1 and sets *record (into `raw`, checked for size
 * and version) when it is a stall record, 0 when it is something else, ST_EBADFILE when it is broken. Whether
 * it fires: record->flags & ST_STALL_FIRED. */
int trg_record(const void *raw, size_t size, const struct st_stall_record **record, struct st_error *err);

#define TRG_FRAMES     24
#define TRG_FRAME_TEXT 512

/* Where the stalled thread was in the language of its program: the frames of its interpreter. */
struct trg_frames {
    uint64_t seq; /* of the record that they belong to */

    size_t n, waker_n; /* 0: there are none */

    char runtime[32]; /* "Python 3.11.2" */

    char text[TRG_FRAMES][TRG_FRAME_TEXT]; /* "FUNCTION (FILE:LINE)", innermost first; not escaped */

    char waker_text[TRG_FRAMES][TRG_FRAME_TEXT]; /* of the thread that woke it, as it did */
};

/* A user-space step the kind needs once a record fired (the user stack of a thread that is still off its CPU,
 * from /proc and its memory): may change the copy in place. */
void trg_complete(struct trg_set *set, struct st_stall_record *record);

/* The frames of the record that was completed last. The set's own, until the next one. */
const struct trg_frames *trg_frames(const struct trg_set *set);

/* Nothing fires for `ns` from now (--cooldown), or at all (UINT64_MAX), or from now on again (0). Measuring
 * goes on. */
int trg_hold(struct trg_set *set, uint64_t ns, struct st_error *err);

/* One line for the person: `thread 4312 "forwarder" off-CPU 40.2 ms in recvfrom, woken by softirq NET_RX
 * after timer tcp_delack_timer`. `name` resolves a kernel address (may be NULL). */
typedef const char *trg_ksym_fn(void *ctx, uint64_t address);
void trg_describe(const struct trg_set *set, const struct st_stall_record *record, trg_ksym_fn *name,
                  void *ctx, char *text, size_t size);

/* A while after trg_start(): says in a line, once, of each trigger whose system call the target does not make
 * what it calls instead. Returns whether one is left, to be asked for again. */
bool trg_tell_unseen(struct trg_set *set);

/* What one trigger measured: of all threads together, or of one. */
struct trg_measured {
    const char *trigger; /* the text of the --on */

    const char *measures; /* "time off the CPU" */

    uint64_t threshold_ns; /* 0: none that stays the same */

    bool hits; /* each event fires; the histogram is of the times between them */

    const char
        *unseen; /* "not called since armed": it has not begun at all; NULL: it has, or is not looked at */

    bool leaves_out_idle; /* waits for work are not in it; idle=yes counts them */

    uint32_t tid; /* 0: all */

    char comm[17]; /* as the kernel has it */

    const struct hist *hist;
};

/* Trigger after trigger: all threads together, then, with trg_config.by_thread, each of the threads for which
 * something was measured, the worst first. Stops at what is not 0 and returns it. */
typedef int trg_measured_fn(void *ctx, const struct trg_measured *measured, struct st_error *err);
int trg_each_measured(struct trg_set *set, trg_measured_fn *fn, void *ctx, struct st_error *err);

/* A place in which a process waited for work, in an idle system call. */
struct trg_waited {
    const char *trigger; /* the text of the --on */

    uint64_t threshold_ns; /* 0: none that stays the same */

    bool learned; /* all waits were seen; else those only that ended over the threshold */

    bool shown; /* idle=learned was written */

    bool always_idle; /* idle=yes does not count it */

    uint32_t pid;

    char syscall[48]; /* its name, or "system call N" */

    uint64_t ip; /* return address of the system call */

    uint32_t depth; /* last bits of the stack pointer; 0: not looked at */

    uint64_t count, unusual; /* how many waits; how many of them counted as stalls */

    uint64_t all; /* waits of the process at all places; 0: not known */

    uint64_t sum_ns, longest_ns; /* of those that have ended */

    uint32_t tid; /* that had the longest */

    char comm[17]; /* of it, as the kernel has it */
};

/* Trigger after trigger, of each the place with the most waits first, or where they are not shown the
 * longest. Stops at what is not 0 and returns it. */
typedef int trg_waited_fn(void *ctx, const struct trg_waited *waited, struct st_error *err);
int trg_each_waited(struct trg_set *set, trg_waited_fn *fn, void *ctx, struct st_error *err);

/* Events that could not be written or tracked (map full, ring full), all triggers together. */
uint64_t trg_lost(struct trg_set *set);

/* Detaches, frees. NULL is allowed. */
void trg_close(struct trg_set *set);

#endif
