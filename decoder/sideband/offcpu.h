/* When a thread was off its CPU: told by the side-band, and joined to calls by the stack builder. */
#ifndef ST_DECODER_SIDEBAND_OFFCPU_H
#define ST_DECODER_SIDEBAND_OFFCPU_H

#include <stdint.h>

/* Time during which the thread was not on a CPU. */
struct dec_offcpu {
    uint64_t start, end;

    uint32_t preempted; /* it was runnable */

    uint32_t call; /* set by the stack builder: 1 + the index of the innermost call then; 0: none is known */
};

#endif
