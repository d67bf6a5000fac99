/* The Python frames of a stall: from the programs that see it, or from here while it goes on, to texts. */
#ifndef ST_TRIGGERS_PYTHON_STALL_H
#define ST_TRIGGERS_PYTHON_STALL_H

#include "base/stall_record.h"
#include "triggers/python.h"
#include "triggers/trigger.h"

#include <bpf/libbpf.h>

/* Tells the BPF programs where a process has its interpreter. False: it has none that is known. */
bool trg_python_watch(struct bpf_map *pythons, pid_t pid, struct trg_python *python);

/* Adds the frames of the record's thread, which is off its CPU, to its user stack. False: there are none. */
bool trg_python_add(const struct trg_python *python, struct st_stall_record *r);

/* Takes the frames out of the record's user stack, and their texts; they are none where it holds none. What
 * was in `frames` is forgotten. */
void trg_python_take(struct st_stall_record *r, struct trg_frames *frames);

#endif
