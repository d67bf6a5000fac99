/* The signals that end or steer a recording, as a descriptor. */
#ifndef ST_RECORDER_ARM_SIGNALS_H
#define ST_RECORDER_ARM_SIGNALS_H

#include "base/error.h"

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR2 and returns a descriptor that delivers them; SIGPIPE is ignored.
 * ST_EFAIL. */
int rec_signals_open(struct st_error *err);

/* Takes one signal from the descriptor. Its number, or 0 when there is none. */
int rec_signals_read(int fd);

/* Takes back a signal that has come and was not read. */
void rec_signals_forget(int signal);

/* In a child, before its exec: signals as they were before rec_signals_open. */
void rec_signals_restore(void);

#endif
