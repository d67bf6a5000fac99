/* The calls of a thread of which only samples are known: a call chain now and then.
 *
 * What a thread did at a moment is what the nearest sample says, in the time that the thread had a CPU (so a
 * function's time is its share of the samples, also of a thread that seldom runs). Where it left its CPU is
 * known from the context switches, and with what chain from the sample that was taken there: that chain holds
 * for just as long as the thread was off. A frame that stays from one chain to the next is one call; it is
 * the same frame if the frames around it are, each of which is still at the same call.
 *
 * A wait ends what waited: the kernel's frames and the library's function that entered it (all behind
 * `outer`) are closed as the thread comes back, so no call is the sum of two waits. Whether the next wait in
 * the same place was the same call nobody knows: both have TDB_CALL_PART. Frames further out stay open, and
 * those that stay from one wait to the next have TDB_CALL_SEVERAL. A system call that was measured is one
 * call from its begin to its end instead, with all its waits. */
#ifndef ST_DECODER_MODEL_SAMPLES_SAMPLES_H
#define ST_DECODER_MODEL_SAMPLES_SAMPLES_H

#include "base/vec.h"
#include "decoder/callstack/stack.h"
#include "decoder/model/samples/spans.h"

struct dec_sample_frame {
    uint64_t site; /* where what it called returns to; of the innermost frame any; 0: not known */

    uint32_t symbol;

    bool kernel;
};

/* Whether both frames may be at the same call. */
static inline bool dec_same_site(const struct dec_sample_frame *a, const struct dec_sample_frame *b)
{
    return a->site == b->site || !a->site || !b->site;
}

/* Frames are in an array of the caller's, the outermost first. */
struct dec_chain {
    uint64_t time;

    uint32_t first, n; /* its frames */

    uint32_t outer; /* so many of them are not a part of the system call that it is in; n: it is in none */

    int32_t cpu;

    bool off; /* taken as the thread left its CPU */

    bool broken; /* the outer frames of the user code are not there: nobody knows how many */
};

/* How many of a chain's frames are of user code. */
static inline size_t dec_chain_users(const struct dec_sample_frame *frames, const struct dec_chain *chain)
{
    size_t n = 0;

    while (n < chain->n && !frames[chain->first + n].kernel)
        n++;
    return n;
}

struct dec_samples {
    const struct dec_sample_frame *frames;

    const struct dec_chain *chains; /* of one thread, in the order of their times */

    size_t n;

    struct dec_offcpu *offcpu; /* sorted, disjoint; `call` is set */

    size_t noffcpu;

    const dec_measured_calls
        *measured; /* NULL: none; a system call among them is one call from begin to end */

    int32_t tid; /* whose these samples are, among them */

    uint64_t part_since; /* since when not every context switch has a sample: where the thread waits is then
                          * not known of one that has none. UINT64_MAX: they all have */
};

/* A stretch of chains without a loss: [first, first + n), at least one. */
struct dec_samples_segment {
    size_t first, n;

    uint64_t start, end; /* start <= the first chain's time, end >= the last one's */

    bool born, ended; /* the thread was, at start and end: its outermost calls really began and ended there */
};

typedef ST_VEC(struct tdb_span) dec_calls;

/* Appends the segment's calls, in the order of their start, parents before their children; all have the flag
 * TDB_CALL_SAMPLED. 0, or -1 (no memory). */
int dec_samples_calls(const struct dec_samples *in, const struct dec_samples_segment *segment,
                      dec_calls *calls);

/* Gives each broken chain the outer frames that the whole chains before and behind it have in common.
 * `frames` is the vector that in->frames points into, and may move; chains are changed. 0 or -1. */
typedef ST_VEC(struct dec_sample_frame) dec_sample_frames;
int dec_samples_mend(dec_sample_frames *frames, struct dec_chain *chains, size_t n);

#endif
