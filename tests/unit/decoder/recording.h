/* Makes small perf.data files for tests: side-band records with their identity behind them, stall records, no
 * trace. */
#ifndef ST_TEST_RECORDING_H
#define ST_TEST_RECORDING_H

#include "base/stall_record.h"
#include "perfdata/writer.h"

#include <stdbool.h>
#include <stdint.h>

/* Starts the file recording_path() with a dummy event and the stall event. Fails the test when it cannot. */
void recording_begin(void);

/* Ends it: it is there then. */
void recording_end(void);

/* Deletes it, and recording_database(). */
void recording_remove(void);

const char *recording_path(void);

/* Where its database may be written: beside it. */
const char *recording_database(void);

/* Who and when: goes behind every record that follows. */
void recording_at(uint64_t time, uint32_t pid, uint32_t tid, uint32_t cpu);

void recording_comm(uint32_t pid, uint32_t tid, const char *name, bool exec);
void recording_fork(uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid);
void recording_exit(uint32_t pid, uint32_t tid);
void recording_mmap(uint32_t pid, uint64_t address, uint64_t length, uint64_t pgoff, const char *name);
void recording_switch(bool out, bool preempted);
void recording_itrace(uint32_t pid, uint32_t tid);
void recording_lost(uint64_t n);
void recording_lost_switches(uint64_t n); /* some may have been context switches */
void recording_ksymbol(uint64_t address, uint32_t length, uint16_t flags, const char *name);
void recording_stall(const struct st_stall_record *record);

/* A system call with arguments 1, 2, 3 that returned 1 ns later. */
void recording_syscall(int64_t number, int64_t result);

/* A sample with a call chain, as it stands in the record: n addresses and perf's marks. At a context switch,
 * or by the CPU's clock (1 kHz). */
void recording_sample(bool at_switch, const uint64_t *chain, unsigned n);

/* A sample of sched:sched_switch: the thread leaves its CPU in a state as the tracepoint has it, with a call
 * chain as above. */
void recording_left(int64_t state, const uint64_t *chain, unsigned n);

/* A sample of user code with the processor's stack of n branches, newest first: {from, to}. */
void recording_branches(const uint64_t (*branches)[2], unsigned n);

/* The kernel dropped n samples; it holds them back from now on, or no more. */
void recording_lost_samples(uint64_t n);
void recording_throttle(bool on);

/* Strings "key=value" of the recorder, each with its NUL: the size without the literal's own. */
void recording_meta(const char *strings, size_t size);

/* The ring of a thread: n bytes of padding packets. */
void recording_ring(uint32_t idx, uint32_t tid, uint64_t offset, size_t n);

/* The kernel wrote a chunk of a ring and had no room behind it. */
void recording_aux(uint64_t offset, uint64_t size, uint64_t flags);

/* A vdso's bytes. */
void recording_vdso(uint32_t pid, uint64_t address, const void *bytes, uint32_t size);

/* Names for kernel addresses: {address, start, name} n times. */
struct recording_name {
    uint64_t address, start;

    const char *name;
};
void recording_names(const struct recording_name *names, unsigned n);

#endif
