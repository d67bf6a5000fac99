/* The user stack of a thread that does not run, from outside. */
#ifndef ST_TRIGGERS_USTACK_H
#define ST_TRIGGERS_USTACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Follows the frame pointers from bp through the memory of process pid; frames below sp are no frames. Puts
 * the return addresses, innermost first, into frames[0..room). Returns how many: 0 when the memory cannot be
 * read. */
size_t trg_walk_user_stack(pid_t pid, uint64_t sp, uint64_t bp, uint64_t *frames, size_t room);

#endif
