/* The kernel's clock, and this process's own. */
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns as the kernel and its BPF programs read it (bpf_ktime_get_ns()): without what a time
 * namespace adds for its processes (time_namespaces(7)). */
uint64_t st_kernel_ns(void);

/* CLOCK_MONOTONIC in ns as this process has it: for deadlines. No system call. */
uint64_t st_mono_ns(void);

#endif
