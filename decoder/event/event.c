/* The words for events. */
#include "decoder/event/event.h"

const char *dec_gap_name(enum dec_gap reason)
{
    static const char *const names[] = {
        [DEC_GAP_OVERFLOW] = "overflow",
        [DEC_GAP_NO_IMAGE] = "no image",
        [DEC_GAP_MISMATCH] = "mismatch",
        [DEC_GAP_TRUNCATED] = "truncated",
        [DEC_GAP_BAD_PACKET] = "bad packet",
        [DEC_GAP_NOT_ATTACHED] = "not attached",
        [DEC_GAP_OVERWRITTEN] = "overwritten",
        [DEC_GAP_PAUSED] = "paused",
        [DEC_GAP_LOST] = "lost",
        [DEC_GAP_STALE_FILE] = "stale file",
        [DEC_GAP_JIT] = "code without a file",
        [DEC_GAP_CPU] = "cpu not recorded",
        [DEC_GAP_THROTTLED] = "throttled",
        [DEC_GAP_NOT_SAMPLED] = "not sampled",
        [DEC_GAP_LEFT_OUT] = "left out",
    };

    return (size_t)reason < sizeof(names) / sizeof(names[0]) && names[reason] ? names[reason] : "?";
}
