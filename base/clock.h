/* The kernel's clock. */
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns as the kernel and its BPF programs read it (bpf_ktime_get_ns()): without what a time
 * namespace adds for its processes (time_namespaces(7)). */
uint64_t st_kernel_ns(void);

#endif
