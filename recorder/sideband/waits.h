/* Waits of the target's threads of which no mark was taken: in what state, and in which system call, the
 * thread was. There are many, and few are asked for: the newest are kept, and what a snapshot is about is put
 * into its marks. */
#ifndef ST_RECORDER_SIDEBAND_WAITS_H
#define ST_RECORDER_SIDEBAND_WAITS_H

#include "recorder/sideband/record_store.h"
#include "triggers/bpf/select_shared.h"

#include <sys/types.h>

struct rec_waits;

/* ST_ENOMEM. */
int rec_waits_open(struct rec_waits **waits, struct st_error *err);

/* Keeps the wait that a switch tells the end of, if it does. */
void rec_waits_take(struct rec_waits *waits, const struct select_switch *s);

/* Puts marks "offcpu" into the store, samples of the event `id`, each once: of all waits of thread `tid` that
 * are kept
 * (-1: there is no such thread), and of the longest of the others. ST_ENOMEM. */
int rec_waits_tell(struct rec_waits *waits, uint64_t id, pid_t tid, struct rec_store *store,
                   struct st_error *err);

/* NULL is allowed. */
void rec_waits_close(struct rec_waits *waits);

#endif
