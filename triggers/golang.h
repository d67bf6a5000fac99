/* Programs of Go, whose threads wait otherwise than those of C. */
#ifndef ST_TRIGGERS_GOLANG_H
#define ST_TRIGGERS_GOLANG_H

#include "base/target.h"

#include <stdbool.h>

/* Whether all that is watched are programs of Go: goroutines, not threads, wait for locks and channels there,
 * so that a thread that waits by futex has no goroutine to run (Go's runtime/proc.go: stopm, sysmon,
 * templateThread). Told by the note that Go's linker puts into the first pages of a program
 * (cmd/link/internal/ld/elf.go, ELF_NOTE_GO_NAME). False also where that cannot be read, and for the whole
 * machine. */
bool trg_is_golang(const struct st_target *target);

#endif
