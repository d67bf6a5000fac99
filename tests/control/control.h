/* How late the machine itself is, beside a test that measures time: a thread of the highest real-time
 * priority on each CPU sleeps a millisecond at a time, and one looks at what the hypervisor took (steal of
 * /proc/stat). A figure that a test measured in a stretch where these were off by more than half of its
 * tolerance says nothing of the program.
 *
 * Times are CLOCK_MONOTONIC, ns. One control a process. */
#ifndef ST_TEST_CONTROL_H
#define ST_TEST_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* Starts it, or does nothing where it runs already. Returns false where a thread may not have that priority:
 * then control_off() is always 0, and no figure is excused. */
bool control_begin(void);

/* Ends it; what it noted is forgotten. */
void control_end(void);

/* By how much the machine was off between two moments: the latest that a sleep which overlaps them ended, or
 * what was stolen from one CPU in them, whichever is more. What is too long ago (some minutes of a very busy
 * machine) counts as off by UINT64_MAX. */
uint64_t control_off(uint64_t from, uint64_t to);

#endif
