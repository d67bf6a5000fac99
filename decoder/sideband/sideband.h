/* The side-band of a recording: its perf records -> processes, threads with their names over time, address
 * spaces, when who ran where, what was lost, the rings of trace, and the stall records.
 *
 * It does not change once it is read, but for threads that are adopted and dec_offcpu.call: several threads
 * may ask it at once.
 *
 * All times are perf clock ns. Records are applied in the order of their times; those without a time (perf
 * makes them up for what was there before the recording) come first, in the order of the file. Everything is
 * owned by the side-band and lives until dec_sideband_free. */
#ifndef ST_DECODER_SIDEBAND_SIDEBAND_H
#define ST_DECODER_SIDEBAND_SIDEBAND_H

#include "base/stall_record.h"
#include "base/vec.h"
#include "decoder/pt/flow.h"
#include "decoder/sideband/offcpu.h"
#include "perfdata/reader.h"

struct dec_name {
    uint64_t time; /* since when */

    char name[16];
};

struct dec_slice {
    uint64_t start, end;

    int32_t cpu;
};

/* The kind of program that a process executes. */
struct dec_abi {
    uint64_t since;

    bool narrow; /* of 32 bits */
};

/* A process from its birth to its end. A pid that is used again is another process. */
struct dec_process {
    size_t index; /* in dec_sideband.processes */

    int32_t pid, parent_pid; /* -1: unknown */

    uint64_t start, end; /* 0, UINT64_MAX: not seen */

    struct dec_space *space;

    bool borrowed; /* the space is */

    ST_VEC(struct dec_abi) abis; /* by time; none: not known */
};

struct dec_thread {
    struct dec_process *process;

    int32_t tid;

    int32_t cpu; /* of an idle thread (tid 0), which every CPU has; else -1 */

    uint64_t start, end; /* 0, UINT64_MAX: not seen */

    bool traced; /* PERF_RECORD_ITRACE_START told of it */

    uint64_t traced_since;

    bool ringless; /* the recorder had no ring for it (any more); then it had one since and until when */

    uint64_t ring_since, ring_until;

    ST_VEC(struct dec_name) names; /* at least one */

    ST_VEC(struct dec_slice) slices;

    ST_VEC(struct dec_offcpu) offcpu;

    ST_VEC(uint64_t) execs;

    uint64_t first_in; /* when it was first seen to come onto a CPU; 0: never */

    uint64_t ran_since, off_since; /* while reading: on a CPU, off it; 0: neither is known */

    bool off_preempted;

    int32_t ran_cpu;

    size_t holes_seen; /* inside sideband_switch.c */

    size_t index; /* in dec_sideband.threads */

    struct dec_thread *earlier; /* that had the same tid */
};

struct dec_tid;
struct dec_pid;

/* Who ran on a CPU since when. */
struct dec_turn {
    uint64_t start, end;

    uint64_t reach; /* the latest end of it and those before it */

    struct dec_thread *thread;
};

/* Context switches of a CPU that were lost. */
struct dec_hole {
    size_t number; /* of all CPUs' */

    uint64_t since, until;
};

struct dec_cpu {
    int32_t cpu;

    ST_VEC(struct dec_turn) turns; /* by their starts */

    uint64_t last_switch; /* while reading */

    ST_VEC(struct dec_hole) holes; /* in the order of their times */
};

/* The trace of one ring. */
struct dec_ring {
    uint32_t idx;

    int32_t tid, cpu; /* -1: a ring of a CPU, of a thread */

    ST_VEC(struct dec_piece) pieces;

    uint64_t bytes;

    bool overwritten; /* there was older trace, which was overwritten */
};

/* Ends of chunks after which the kernel had no room for more (PERF_RECORD_AUX with a flag). */
struct dec_aux_loss {
    int32_t tid, cpu;

    uint64_t offset;
};

/* Something that happened or was lost, which has no row of its own. */
struct dec_notice {
    uint64_t time;

    uint64_t until; /* 0: a moment */

    uint64_t since; /* lost from then on, until `time`; 0: not known */

    int32_t tid, cpu; /* -1: none */

    bool lost; /* a gap, else a mark */

    bool of_samples; /* it concerns the samples */

    bool of_marks; /* it concerns the samples of tracepoints that are no more than marks */

    const char *name; /* "exec", "throttled", ... */

    char detail[ST_MARK_TEXT + 1];
};

struct dec_stall_sample {
    uint64_t time; /* of the sample: record->now_ktime on the perf clock */

    struct st_stall_record record;
};

/* The name of a kernel address, from a symbol record. */
struct dec_kernel_name {
    uint64_t address, start;

    const char *name; /* "name" or "name [module]"; in the file's memory */
};

/* Nothing was recorded from `done` to `resumed` (and in rings that were stopped earlier, from `stopped`; 0:
 * not known). */
struct dec_pause {
    uint64_t stopped, done, resumed;
};

/* A string "key=value" that the recorder wrote (struct st_meta_record). */
struct dec_meta {
    const char *text; /* in the file's memory */

    const char *value; /* behind the '=' */

    size_t order; /* in the file */
};

/* A sample with a call chain. */
struct dec_sample_record {
    uint64_t time;

    int32_t pid, tid, cpu;

    bool at_switch; /* of the context-switches event */

    struct pd_record record;
};

/* A sample of a tracepoint that says more of a thread than its calls. */
enum dec_point_kind {
    DEC_POINT_NONE,
    DEC_POINT_SWITCH, /* sched:sched_switch: the thread leaves its CPU */
    DEC_POINT_WAKING, /* sched:sched_waking: it wakes another, or an interrupt does that came upon it */
    DEC_POINT_ENTRY,  /* raw_syscalls:sys_enter */
    DEC_POINT_EXIT    /* raw_syscalls:sys_exit */
};

struct dec_point {
    uint64_t time;

    enum dec_point_kind kind;

    int32_t pid, tid, cpu; /* who ran */

    struct pd_record record;
};

/* A ring of samples, as the recorder tells of it. */
struct dec_sample_ring {
    int32_t tid, cpu; /* -1: a ring of a CPU, of a thread */

    uint64_t since;

    bool overwritten;
};

struct dec_sideband {
    ST_VEC(struct dec_process *) processes;

    ST_VEC(struct dec_thread *) threads;

    ST_VEC(struct dec_cpu) cpus;

    ST_VEC(struct dec_ring) rings;

    ST_VEC(struct dec_notice) notices;

    ST_VEC(char *) mark_names; /* of notices; owned */

    ST_VEC(struct dec_sample_record) samples; /* by thread, then time */

    ST_VEC(struct dec_sample_ring) sample_rings;

    ST_VEC(struct dec_point) points; /* in the order of their times */

    ST_VEC(struct dec_sample_ring) point_rings; /* of CPUs, with wake-ups alone */

    const struct perf_event_attr *sampled; /* by the event that sampled; NULL: there are no samples */

    ST_VEC(struct dec_stall_sample) stalls; /* in the order of their times */

    ST_VEC(struct dec_kernel_name) kernel_names; /* sorted by address */

    ST_VEC(struct dec_meta) meta, meta_by_key; /* the latter by key, then order */

    ST_VEC(struct dec_pause) pauses; /* for earlier snapshots, in the order of time */

    struct dec_space *kernel;

    uint64_t switch_to; /* address of the kernel's __switch_to; 0: not known */

    struct dec_pt_config pt;

    bool has_pt; /* there is an Intel PT event and its PD_RECORD_AUXTRACE_INFO */

    bool inherited; /* threads are traced from their birth */

    bool snapshot; /* the rings are snapshots of overwritten ones */

    bool has_switches;

    uint64_t first, last; /* times of the first and last record; 0: no record has a time */

    uint64_t skipped; /* records of a type that this version does not know */

    uint64_t unchained; /* samples of events without call chains */

    struct dec_tid *tids; /* inside: the latest thread of each tid */

    struct dec_pid *pids; /* inside: the latest process of each pid */
};

/* Reads all records. Images are opened through `images`; both it and the reader must live longer than the
 * side-band. ST_EBADFILE: the file is damaged or cut, or a record is not what its type promises (file,
 * offset, type); ST_ENOMEM. *sideband is untouched on error. */
int dec_sideband_read(struct pd_reader *reader, struct dec_images *images, struct dec_sideband **sideband,
                      struct st_error *err);

/* The side-band that raw input does not have: ring and thread i + 1 of process 1 for each of n traces.
 * `space` stays the caller's. ST_ENOMEM. */
int dec_sideband_raw(size_t n, const struct dec_pt_config *pt, struct dec_space *space,
                     struct dec_sideband **sideband, struct st_error *err);

/* NULL is allowed. */
void dec_sideband_free(struct dec_sideband *sb);

/* The thread that had a tid at a time (0: the first that had it); `cpu` tells idle threads apart. NULL: never
 * heard of. */
struct dec_thread *dec_sideband_thread(const struct dec_sideband *sb, int32_t tid, int32_t cpu,
                                       uint64_t time);

/* A thread that was never heard of, and its process where that was not either: the side-band does not have
 * them, and stays as it is. tid -1: nobody knows who. NULL: no memory. */
struct dec_thread *dec_sideband_unheard(const struct dec_sideband *sb, int32_t pid, int32_t tid, int32_t cpu);

/* The side-band takes it, behind all others: nobody may be asking it meanwhile. 0 or -1 (no memory: the
 * thread stays the caller's). */
int dec_sideband_adopt(struct dec_sideband *sb, struct dec_thread *thread);

/* Frees one that was not adopted. NULL is allowed. */
void dec_sideband_disown(struct dec_thread *thread);

/* As dec_sideband_thread, but a thread that was never heard of is made and adopted. NULL: no memory. */
struct dec_thread *dec_sideband_need_thread(struct dec_sideband *sb, int32_t pid, int32_t tid, int32_t cpu,
                                            uint64_t time);

/* Who is on a ring when: a dec_where_fn with `ctx` the side-band. */
dec_where_fn dec_sideband_where;

/* A dec_emit_fn (`ctx` the struct dec_turns) that tells the branches of a CPU's ring by thread, where context
 * switches are known, and hands them on to `emit`. ST_ENOMEM. */
struct dec_turns;
int dec_turns_new(struct dec_sideband *sb, dec_emit_fn *emit, void *ctx, struct dec_turns **turns,
                  struct st_error *err);
dec_emit_fn dec_turns_emit;
void dec_turns_free(struct dec_turns *turns);

/* The name of a kernel address in stall records; NULL: none was recorded. */
const struct dec_kernel_name *dec_sideband_kernel_name(const struct dec_sideband *sb, uint64_t address);

/* The first value of a key of the recorder's; NULL: there is none. */
const char *dec_sideband_meta(const struct dec_sideband *sb, const char *key);

/* The same as a number; `otherwise` where there is none. */
int64_t dec_sideband_meta_number(const struct dec_sideband *sb, const char *key, int64_t otherwise);

/* Whether the program that a process executes at `time` is one of 32 bits: by where its vdso is. */
bool dec_process_is_narrow(const struct dec_process *process, uint64_t time);

/* The name that a thread had at a time. */
const char *dec_thread_name(const struct dec_thread *thread, uint64_t time);

#endif
