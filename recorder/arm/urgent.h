/* The loop's thread before all others, while something is recorded: how soon the rings stop after a stall is
 * when it gets a CPU. */
#ifndef ST_RECORDER_ARM_URGENT_H
#define ST_RECORDER_ARM_URGENT_H

/* Keeps what the process has mapped, its code above all, from being paged out, where this user may; to be
 * called before rings are mapped, or the kernel walks through them. Children do not inherit it. */
void rec_urgent_memory(void);

/* Makes the calling thread one of SCHED_FIFO, where this user may. Neither children nor other threads inherit
 * it. A thread that does not sleep for REC_URGENT_MS (a target keeps it busy) is an ordinary one from then
 * on: nobody is to starve for it. That what cannot be had is not there is no error. */
void rec_urgent_begin(void);

enum { REC_URGENT_MS = 200 };

/* The calling thread is an ordinary one again. Nothing if it was not made another one. */
void rec_urgent_end(void);

/* In a child: what rec_urgent_begin changed of the limits that children inherit. */
void rec_urgent_restore(void);

#endif
