/* What arm and its stepping helper say to each other, over a SOCK_SEQPACKET socket. */
#ifndef ST_RECORDER_SOURCES_STEP_MESSAGE_H
#define ST_RECORDER_SOURCES_STEP_MESSAGE_H

#include "base/error.h"

#include <stdint.h>

enum step_message_kind {
    /* Commands; the helper answers each with the same kind. */
    STEP_MSG_ATTACH, /* sent by nobody: the helper begins with it. code and text are those of an error */
    STEP_MSG_START,
    STEP_MSG_FREEZE, /* value: CLOCK_MONOTONIC_RAW now; first; the answer: that moment in the perf clock, and
                        done */
    STEP_MSG_RESUME,
    STEP_MSG_JOIN,  /* first: a process that came into the target; the answer's code and text are those of an
                     * error */
    STEP_MSG_LEAVE, /* detach and end; the answer is that the socket closes */

    /* By the helper's own accord. */
    STEP_MSG_ENDED, /* every thread of the target has ended */
};

struct step_message {
    uint32_t kind;

    int32_t code; /* enum st_code */

    int32_t first; /* the thread whose ring is closed before the others (-1: any), or a process */

    uint64_t value;

    uint64_t done; /* perf clock ns */

    char text[sizeof(((struct st_error *)0)->text)];
};

/* Sends one. 0, or -1 with errno. Never raises SIGPIPE. */
int step_message_send(int sock, const struct step_message *m);

/* Receives one. 1: here it is; 0: the other side has closed; -1: none there now (only with `wait` false) or
 * an error. */
int step_message_receive(int sock, struct step_message *m, int wait);

#endif
