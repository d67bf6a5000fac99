/* Loops of many steps, on kernels before bpf_loop() (Linux 5.17) too: a walk over the elements of an array,
 * which are only counted. */
#ifndef ST_TRIGGERS_BPF_STEPS_BPF_H
#define ST_TRIGGERS_BPF_STEPS_BPF_H

#include "triggers/bpf/kernel.h"

#define STEPS_MOST 4096

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, STEPS_MOST);
    __type(key, st_u32);
    __type(value, char);
} steps SEC(".maps");

/* A step: `number` counts from 0; not 0 returned: it is the last one. */
#define ST_STEP(name, number, state)                                                                         \
    static long name(void *map, const st_u32 *number, const char *element, state)

/* Up to STEPS_MOST of them. */
#define st_steps(step, state) bpf_for_each_map_elem(&steps, step, state, 0)

#endif
