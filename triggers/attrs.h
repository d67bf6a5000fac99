/* Attributes of a record that are found in /proc, once it fired. */
#ifndef ST_TRIGGERS_ATTRS_H
#define ST_TRIGGERS_ATTRS_H

#include "base/stall_record.h"

/* Adds to the record, as far as it is known and there is room: `file`, what the descriptor is that the
 * waiting system call was about; `accepted` 1, when the process listens at the record's local_port;
 * `next_kernel` 1, when who got the CPU is a thread of the kernel; of a stall that goes on `tracer`, who
 * holds the thread, and `lock_holder`, which process took the lock of a file that it waits for
 * (proc_locks(5)). The process has gone on: a descriptor that it closed meanwhile has no name, or another. */
void trg_add_attrs(struct st_stall_record *record);

#endif
