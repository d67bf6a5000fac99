/* What the probes share: opening the intel_pt PMU, an AUX ring, and counting calls in it with libipt. */
#ifndef PTVM_PROBE_H
#define PTVM_PROBE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* perf_event_attr's word behind aux_sample_size: aux_action, since Linux 6.13; reserved and to be 0 before.
 */
enum { PROBE_AUX_START_PAUSED = 1, PROBE_AUX_PAUSE = 2, PROBE_AUX_RESUME = 4 };

struct probe_ring {
    int fd;

    struct perf_event_mmap_page *page;

    size_t map_size;

    unsigned char *aux;

    size_t aux_size;
};

/* Prints "name: VALUE" of a fact; VALUE by printf. */
void probe_fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends with a message when ok is false. */
void probe_must(bool ok, const char *what);

/* The type of a PMU in sysfs (the intel_pt one), or the id of a tracepoint. */
unsigned probe_pmu_type(const char *pmu);

unsigned probe_tracepoint(const char *name);

/* An intel_pt event, disabled: default timing, return compression off (so that libipt follows retpolines).
 * Not yet open. */
void probe_pt_attr(struct perf_event_attr *attr, bool kernel);

int probe_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group);

/* Maps 8 pages of records and aux_size bytes of AUX area. Returns 0, or -errno of the mmap that failed. */
int probe_map(struct probe_ring *ring, int fd, size_t aux_size, bool overwrite);

void probe_unmap(struct probe_ring *ring);

/* The ring's bytes, oldest first, to be freed; *size their number. An overwritten ring that has not wrapped
 * ends at aux_head. */
unsigned char *probe_copy(const struct probe_ring *ring, size_t *size);

/* Records of one type in the ring's record area; *last the last one's body (not wrapped rings only). */
unsigned probe_records(const struct probe_ring *ring, uint32_t type, const void **last);

struct probe_count {
    uint64_t address;

    unsigned entered; /* times the address was executed */
};

struct probe_decode {
    struct probe_count *counts;

    size_t n;

    uint64_t user_calls; /* near calls executed in user space and in the kernel */

    uint64_t kernel_calls;

    uint64_t kernel_calls_after; /* kernel calls after the last execution of `after` */

    uint64_t after; /* 0: none */

    uint64_t
        kernel_calls_enabled; /* kernel calls since tracing was last enabled, the ring's thread switched in */

    unsigned errors;

    unsigned overflows;
};

/* Follows the trace; user code is read from this process (the target is a fork of it), kernel code from
 * /proc/kcore. */
void probe_decode(const unsigned char *trace, size_t size, struct probe_decode *d);

/* The address of a kernel symbol, or 0. */
uint64_t probe_ksym(const char *name);

uint64_t probe_now(void); /* CLOCK_MONOTONIC, ns */

#endif
