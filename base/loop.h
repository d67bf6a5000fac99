/* Waiting for many descriptors at once. */
#ifndef ST_BASE_LOOP_H
#define ST_BASE_LOOP_H

#include "base/error.h"

#include <stdint.h>

/* A descriptor and what to call when it is readable (or hung up). Returns 0 to go on; negative ends the loop
 * with an error; positive ends rec_loop_turn with that value. */
struct rec_watch {
    int fd;

    int (*ready)(void *ctx, struct st_error *err);

    void *ctx;
};

/* Returns the loop's descriptor, or ST_EFAIL. Close it with close(). */
int rec_loop_open(struct st_error *err);

/* `watch` stays the caller's and must live until it is removed. */
int rec_loop_add(int loop, struct rec_watch *watch, struct st_error *err);

/* Nothing happens when it is not in the loop. To be called before the descriptor is closed. */
void rec_loop_remove(int loop, const struct rec_watch *watch);

/* Waits for one descriptor and calls its function. Returns what that returned, or ST_EFAIL. */
int rec_loop_turn(int loop, struct st_error *err);

/* So long after its start it is told that a trigger waits for a system call that is not made. */
#define REC_UNSEEN_NS 1000000000

/* A timer's descriptor (CLOCK_MONOTONIC), not running, or ST_EFAIL. */
int rec_timer_open(struct st_error *err);

/* Fires once after `ns` (at least 1), and then every `every` if that is not 0; ns 0 stops it. */
int rec_timer_set(int timer, uint64_t ns, uint64_t every, struct st_error *err);

/* Takes the expirations, so that the descriptor is quiet again. */
void rec_timer_clear(int timer);

#endif
