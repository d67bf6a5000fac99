/* The record of one stall, as a trigger's BPF program writes it: the raw payload of a bpf-output sample in
 * the snapshot. Shared with BPF programs: fixed-width types only, no pointers, the same layout everywhere
 * (little-endian, as the file). All *_ktime are CLOCK_MONOTONIC ns (bpf_ktime_get_ns); the sample's own time
 * is the perf clock (that of the event: perf's own, or CLOCK_MONOTONIC where attr.clockid says so) at the
 * moment of output, `now_ktime` the same moment in CLOCK_MONOTONIC, so sample.time - now_ktime leads from one
 * to the other. */
#ifndef ST_BASE_STALL_RECORD_H
#define ST_BASE_STALL_RECORD_H

#ifndef __bpf__
#include <stdint.h>
typedef uint64_t st_u64;
typedef uint32_t st_u32;
typedef int32_t st_s32;
typedef uint16_t st_u16;
#else
typedef unsigned long long st_u64;
typedef unsigned int st_u32;
typedef int st_s32;
typedef unsigned short st_u16;
#endif

#define ST_STALL_MAGIC   0x31545453u /* "STT1": a struct st_stall_record */
#define ST_SYMBOL_MAGIC  0x31595453u /* "STY1": a struct st_symbol_record */
#define ST_META_MAGIC    0x314d5453u /* "STM1": a struct st_meta_record */
#define ST_VDSO_MAGIC    0x31565453u /* "STV1": a struct st_vdso_record */
#define ST_MARK_MAGIC    0x314b5453u /* "STK1": a struct st_mark_record */
#define ST_ROOM_MAGIC    0x31525453u /* "STR1": room for records, and no record */
#define ST_STALL_VERSION 1

/* The event's name in the perf.data attribute (HEADER_EVENT_DESC) of the samples that hold these records. */
#define ST_STALL_EVENT_NAME "stalltrap:stall"

/* The name of a second event, a dummy with raw data, of the samples that hold what else belongs to a
 * snapshot: struct st_meta_record, struct st_vdso_record. (perf prints the data of bpf-output samples in
 * full, of others not.) */
#define ST_META_EVENT_NAME "stalltrap:meta"

/* What was measured. Numbers are part of the file format: never renumbered. */
enum st_stall_kind {
    ST_STALL_OFFCPU = 1,
    ST_STALL_BUSY = 2,
    ST_STALL_RUNQ = 3,
    ST_STALL_SYSCALL = 4,
    ST_STALL_FUNC = 5,
    ST_STALL_CALL = 6,
    ST_STALL_SOCKET = 7,
    ST_STALL_IRQ = 8,
    ST_STALL_SOFTIRQ = 9,
    ST_STALL_QUIET = 10,
    ST_STALL_TRACEPOINT = 11,
    ST_STALL_USDT = 12,
    ST_STALL_BPFTRACE = 13,
    ST_STALL_BPF = 14,
};

enum st_stall_flag {
    ST_STALL_ONGOING = 1, /* written while the stall was going on; end_ktime is 0 */
    ST_STALL_COMPLETION =
        2, /* the end of a stall whose ongoing record (same seq) came before: completes that row */
    ST_STALL_FIRED = 4, /* this record fires the trigger (a COMPLETION never does) */
    ST_STALL_IDLE = 8,  /* the wait is on the idle list and was counted because of idle=yes */
    ST_STALL_STACK_LATE =
        16, /* the thread had moved on when ustack was taken: its inner frames may be of later calls */
    ST_STALL_COMPAT = 32, /* in a 32-bit system call: `syscall` is an i386 number */
    ST_STALL_FOUND = 64, /* it went on already when its thread began to be watched, which is its start here */
    ST_STALL_UNTRACED =
        128, /* the kernel did not trace the switch by which the thread came back, nor who woke it */
};

/* In what context the waker ran. Outside TASK the current task is a bystander and waker_tid only tells which.
 */
enum st_waker_ctx {
    ST_WAKER_NONE = 0,
    ST_WAKER_TASK = 1,
    ST_WAKER_SOFTIRQ = 2,
    ST_WAKER_IRQ = 3,
    ST_WAKER_NMI = 4,
    ST_WAKER_IDLE = 5,
};

/* Of who wakes a thread before the threshold only the context and the thread are kept. */
#define ST_WAKER_VEC_UNKNOWN 0xffffffffu

#define ST_STALL_KSTACK 64
#define ST_STALL_USTACK 128
#define ST_STALL_WSTACK 48
#define ST_STALL_EXTRA  256

/* A value in wstack that is no frame, as in perf's call chains (PERF_CONTEXT_USER): user frames follow. */
#define ST_STALL_USER_FRAMES 0xfffffffffffffe00ull

/* And two in ustack: pairs of a code object and an instruction follow, the frames of an interpreted program,
 * innermost first; behind the second one those of the waker. In records as triggers write them only: in a
 * snapshot they are texts (frame.N, waker_frame.N). */
#define ST_STALL_PYTHON_FRAMES       0xfffffffffffffd00ull
#define ST_STALL_WAKER_PYTHON_FRAMES 0xfffffffffffffc00ull

struct st_stall_record {
    st_u32 magic;

    st_u16 version;

    st_u16 kind; /* enum st_stall_kind */

    st_u32 flags; /* enum st_stall_flag */

    st_u32 trigger; /* index of the --on that it belongs to, from 0 */

    st_u64 seq; /* unique within a recording; pairs an ongoing record with its completion */

    st_u64 start_ktime;

    st_u64 end_ktime; /* 0: was still going on */

    st_u64 now_ktime;

    st_u64 measured_ns; /* what is compared with the threshold; for an ongoing stall, so far */

    st_u64 threshold_ns;

    st_u32 pid, tid; /* the stalled thread, in the initial pid namespace */

    char comm[16];

    st_u32 state; /* of the thread while off: TASK_* bits as sched_switch's prev_state; 0 = runnable
                     (preempted) */

    st_s32 syscall; /* number of the system call it is in; -1: none */

    st_u64 syscall_args[6];

    st_u32 cpu; /* it ran on */

    st_u32 waker_ctx; /* enum st_waker_ctx */

    st_u32 waker_pid, waker_tid;

    char waker_comm[16];

    st_u32 waker_vec; /* softirq number (include/linux/interrupt.h) or irq number, or ST_WAKER_VEC_UNKNOWN */

    st_u32 next_tid; /* who got the CPU when the thread lost it */

    char waker_irq[16]; /* name of the interrupt's handler, where known */

    char next_comm[16];

    st_u64 wake_ktime; /* 0: not woken yet */

    st_u64
        timer_func; /* kernel address of the timer function that ran before it in the same softirq; 0: none */

    st_u64 timer_ktime;

    st_u16 kstack_n, ustack_n, wstack_n; /* frames that follow, innermost first */

    st_u16 extra_n; /* bytes of extra in use: NUL-terminated "key=value" strings, a kind's own attributes */

    st_u64 kstack[ST_STALL_KSTACK];

    st_u64 ustack[ST_STALL_USTACK];

    st_u64 wstack[ST_STALL_WSTACK]; /* the waker's kernel stack; behind ST_STALL_USER_FRAMES, where that is
                                       among them, its user stack */

    char extra[ST_STALL_EXTRA];
};

#ifndef __bpf__
/* Whether it is known which softirq, or interrupt, woke the thread. Older records have 0 where it is not:
 * with it comes the waker's stack. */
static inline int st_stall_knows_vec(const struct st_stall_record *r)
{
    return r->waker_vec != ST_WAKER_VEC_UNKNOWN && (r->waker_vec || r->wstack_n);
}

/* How many of the wstack_n frames are of the kernel; behind them stands ST_STALL_USER_FRAMES, or nothing. */
static inline unsigned st_stall_waker_kernel(const struct st_stall_record *r)
{
    unsigned n = 0;

    while (n < r->wstack_n && n < ST_STALL_WSTACK && r->wstack[n] != ST_STALL_USER_FRAMES)
        n++;
    return n;
}
#endif

#define ST_MARK_NAME 64
#define ST_MARK_TEXT 192

/* An instant that the user wanted on the timeline, a sample of the same event as the stall records: the
 * sample's time, thread and CPU are its own. */
struct st_mark_record {
    st_u32 magic;

    st_u16 version;

    st_u16 text_n; /* bytes of text in use: NUL-terminated "key=value" strings, the arguments */

    char name[ST_MARK_NAME]; /* what --mark named; NUL-terminated */

    char text[ST_MARK_TEXT];
};

/* Names for the kernel addresses that stall records hold, resolved where they were recorded (written by the
 * recorder as samples of the same event): `n` entries, each {st_u64 address; st_u64 start; NUL-terminated
 * "name" or "name [module]"} packed without padding behind the header. */
struct st_symbol_record {
    st_u32 magic;

    st_u16 version;

    st_u16 n;
};

/* What the recorder knows about the snapshot as a whole, a sample of ST_META_EVENT_NAME: NUL-terminated
 * "key=value" strings follow, `n` bytes of them. Times are perf clock ns, in decimal. Readers skip keys they
 * do not know.
 *
 *   version         of stalltrap
 *   reason          trigger | interrupt | signal | snap | end | timeout
 *   trigger         the text of the --on that fired; trigger_index, trigger_seq: of its stall record
 *   text            the sentence about it that was printed
 *   runtime         what interprets the program of the stalled thread, "Python 3.11.2", and
 *   frame.N         its frames, "FUNCTION (FILE:LINE)": N is 0 for the innermost one
 *   waker_frame.N   those of the thread that woke it, as it did
 *   source          name of the source; source_text: what it says of itself
 *   target          as on the command line
 *   command.PID     the command line, or title, of the process that stalled and of those that were named
 *   exe.PID         the path of its program
 *   armed           when everything was live
 *   freeze_asked, freeze_done, resumed    when the rings were told to stop, had stopped, went on
 *   in_kernel       1: stopped by the kernel before user space woke, else 0
 *   wall_offset_ns  CLOCK_REALTIME = perf clock + this
 *   mono_offset_ns  CLOCK_MONOTONIC = perf clock + this
 *   pause.N         "stopped=TIME done=TIME resumed=TIME": nothing was recorded meanwhile, for an earlier
 *                   snapshot; stopped 0: some rings were stopped by the kernel, before `done`
 *   ring.IDX        "tid=T cpu=C since=TIME offset=BYTES size=BYTES in_kernel=0|1 stopped=TIME" of each ring;
 *                   in_kernel: stopped by the kernel before user space woke; stopped: when user space had
 *                   stopped it, 0: not known
 *   marks.IDX       "cpu=C since=TIME offset=BYTES size=BYTES" of each ring of wake-ups
 *   unseen_cpus     "1,3": CPUs that came or went, on which nothing is recorded (absent: none did)
 *   unmarked_cpus   the same of wake-ups
 *   comm.TID        the name of a thread that woke others
 *   switches_since  context switches before this were dropped for room (absent: none were)
 *   stalls_since    stall records before this were dropped for room (absent: none were)
 *   marks_since     marks before this were overwritten by newer ones (absent: none were)
 *   unnamed.PID     why names of the process's code that was made at run time are missing
 *   traps           how many fired so far, with this one; traps_dropped: those of them whose snapshot could
 * not be written; stalls_without_trap: stalls that did not fire, for the triggers were held lost_events
 * records the triggers could not write warning         a sentence; may occur several times */
struct st_meta_record {
    st_u32 magic;

    st_u16 version;

    st_u16 n;
};

/* The bytes of a vdso, which no file holds, copied at the snapshot: a sample of ST_META_EVENT_NAME. `size`
 * bytes, an ELF image, follow. One that several processes share is written once, for one of them. (Other code
 * without a file lies in files of its own beside the snapshot, and the MMAP2 records name those.) */
struct st_vdso_record {
    st_u32 magic;

    st_u16 version;

    st_u16 reserved;

    st_u32 pid;

    st_u32 size;

    st_u64 address; /* it is mapped at, in that process */
};

#endif
