/* The control socket: how `stalltrap snap` finds a running `arm` and asks it for a snapshot.
 *
 * A stream socket "PID.sock" in /run/stalltrap (root) or $XDG_RUNTIME_DIR/stalltrap, else /tmp/stalltrap-UID.
 * The client sends one line, "who" or "snap"; the answer to "who" is "PID..." (arm's pid, then those of its
 * targets), to "snap", once the file is written, "wrote PATH" or "error TEXT". Only root and the user of the
 * arm are answered. */
#ifndef ST_RECORDER_ARM_CONTROL_H
#define ST_RECORDER_ARM_CONTROL_H

#include "base/error.h"
#include "base/loop.h"
#include "base/vec.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct rec_control;

/* Makes the socket. `ask` is called when somebody wants a snapshot; whoever did waits for rec_control_answer.
 * ST_EFAIL: no folder for it, or it cannot be made. */
int rec_control_open(int loop, const pid_t *targets, size_t ntargets,
                     int (*ask)(void *ctx, struct st_error *err), void *ctx, struct rec_control **control,
                     struct st_error *err);

/* The targets are others now. NULL is allowed. */
void rec_control_targets(struct rec_control *control, const pid_t *targets, size_t n);

/* How often a snapshot was asked for; 0 for NULL. */
unsigned rec_control_asked(const struct rec_control *control);

/* Answers who waits and was among the first `asked` to ask, "wrote PATH" or "error TEXT", and hangs up. Does
 * nothing when nobody does, or control is NULL. */
void rec_control_answer(struct rec_control *control, unsigned asked, const char *answer);

/* Answers who waits with an error, removes the socket, frees. NULL is allowed. */
void rec_control_close(struct rec_control *control);

/* The folders in which `snap` looks: this user's, and for root everybody's. Calls fn for each that is there.
 */
typedef int rec_folder_fn(void *ctx, const char *folder);
int rec_control_folders(rec_folder_fn *fn, void *ctx);

#endif
