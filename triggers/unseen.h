/* A trigger that waits for what never comes: the system call that the target does not make. */
#ifndef ST_TRIGGERS_UNSEEN_H
#define ST_TRIGGERS_UNSEEN_H

#include "triggers/bpf/config.h"

#include <stddef.h>

/* "not called since armed; fsync was, 41 times, worst 300 ms": of the calls that were made instead, by
 * number, up to three that do the same work as `name`, or if there are none the most frequent ones, the most
 * frequent first. */
void trg_unseen_call(const char *name, const struct call_count calls[OFFCPU_SYSCALLS], char *text,
                     size_t size);

#endif
