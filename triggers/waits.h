/* Where threads wait for work, as people read it. */
#ifndef ST_TRIGGERS_WAITS_H
#define ST_TRIGGERS_WAITS_H

#include "base/confined.h"
#include "base/target.h"
#include "triggers/language/kind.h"

/* Whether all processes that are to be watched are known by now, and none of them runs code that a compiler
 * made while it ran: such code gives one call path another depth of the stack each time it is made anew. */
bool trg_has_steady_stacks(const struct st_target *target);

/* "epoll_wait+0x56 (libc.so.6)"; what is not known of an address of the process is left out: "+0x1056
 * (libc.so.6)", "0x7f3a10204056". Made safe for a terminal. The file is read by `child`. */
void trg_name_place(struct st_confined *child, uint32_t pid, uint64_t ip, char *text, size_t size);

/* Each place of one trigger, in the order of trg_each_waited(), with what `like` has of them all. */
int trg_each_wait_of(const struct trg_kind *kind, struct trg_state *state, const struct trg_waited *like,
                     trg_waited_fn *fn, void *ctx, struct st_error *err);

/* The places of idle=learned, a table a process; prints nothing for other triggers. */
int trg_print_places(struct trg_set *set, FILE *to, struct st_error *err);

/* The longest waits over the threshold that did not count, a line each. */
int trg_print_left_out(struct trg_set *set, FILE *to, struct st_error *err);

#endif
