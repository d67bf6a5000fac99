/* What fires. The recorder knows this header, never which kind is behind it. */
#ifndef ST_TRIGGERS_TRIGGER_H
#define ST_TRIGGERS_TRIGGER_H

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

    uint64_t warm_up_ns; /* nothing fires so long after start; it is measured all the same */

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

size_t trg_count(const struct trg_set *set);

/* The text of trigger i as the user wrote it. */
const char *trg_text(const struct trg_set *set, size_t i);

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

/* By what trigger i, started, sees its events, where there are several ways ("uprobe", "fentry"); NULL: there
 * is one. */
const char *trg_hook(const struct trg_set *set, size_t i);

/* By what this kernel lets triggers see its functions (func, call, quiet), and unsent data (socket):
 * "fentry", "kprobe", "tracepoint", the best there is. NULL: not at all, err says why. */
const char *trg_sees_kernel_functions(struct st_error *err);
const char *trg_sees_unsent_data(struct st_error *err);

/* Looks at a raw payload that came out of the rings. Returns 1 and sets *record (into `raw`, checked for size
 * and version) when it is a stall record, 0 when it is something else, ST_EBADFILE when it is broken. Whether
 * it fires: record->flags & ST_STALL_FIRED. */
int trg_record(const void *raw, size_t size, const struct st_stall_record **record, struct st_error *err);

/* A user-space step the kind needs once a record fired (the user stack of a thread that is still off its CPU,
 * from /proc and its memory): may change the copy in place. */
void trg_complete(struct trg_set *set, struct st_stall_record *record);

/* Nothing fires for `ns` from now (--cooldown), or at all (UINT64_MAX), or from now on again (0). Measuring
 * goes on. */
int trg_hold(struct trg_set *set, uint64_t ns, struct st_error *err);

/* One line for the person: `thread 4312 "forwarder" off-CPU 40.2 ms in recvfrom, woken by softirq NET_RX
 * after timer tcp_delack_timer`. `name` resolves a kernel address (may be NULL). */
typedef const char *trg_ksym_fn(void *ctx, uint64_t address);
void trg_describe(const struct trg_set *set, const struct st_stall_record *record, trg_ksym_fn *name,
                  void *ctx, char *text, size_t size);

/* What one trigger measured: of all threads together, or of one. */
struct trg_measured {
    const char *trigger; /* the text of the --on */

    const char *measures; /* "time off the CPU" */

    uint32_t tid; /* 0: all */

    char comm[17]; /* as the kernel has it */

    const struct hist *hist;
};

/* Trigger after trigger: all threads together, then, with trg_config.by_thread, each of the threads for which
 * something was measured, the worst first. Stops at what is not 0 and returns it. */
typedef int trg_measured_fn(void *ctx, const struct trg_measured *measured, struct st_error *err);
int trg_each_measured(struct trg_set *set, trg_measured_fn *fn, void *ctx, struct st_error *err);

/* Events that could not be written or tracked (map full, ring full), all triggers together. */
uint64_t trg_lost(struct trg_set *set);

/* Detaches, frees. NULL is allowed. */
void trg_close(struct trg_set *set);

#endif
