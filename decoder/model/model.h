/* The model: what was decoded, gathered until every row of the trace database is known, and then written. */
#ifndef ST_DECODER_MODEL_MODEL_H
#define ST_DECODER_MODEL_MODEL_H

#include "decoder/dwarf/inlines.h"
#include "decoder/pt/flow.h"
#include "decoder/sideband/sideband.h"

struct dec_model;

struct st_spill;

/* The side-band and the images stay the caller's and must live longer, as must the spill: it takes what there
 * is no memory for of the branches of CPUs and of calls. NULL: all stays in memory. ST_ENOMEM. */
int dec_model_new(struct dec_sideband *sb, struct st_spill *spill, struct dec_model **model,
                  struct st_error *err);

/* Calls of functions that were inlined are calls too. Before anything is taken; `inlines` (NULL: they are
 * not) stays the caller's and must live longer. */
void dec_model_set_inlines(struct dec_model *m, struct dec_inlines *inlines);

void dec_model_free(struct dec_model *m);

/* Takes the branches of one ring after the other: a dec_emit_fn with `ctx` the model. Those of a thread's
 * ring become calls at once, those of a CPU's ring wait until all of the thread's are there. After a failure
 * dec_model_error tells why. */
dec_emit_fn dec_model_emit;
const struct st_error *dec_model_error(const struct dec_model *m);

/* A way into the model for one of several threads that give it branches at once: dec_model_feed_emit is a
 * dec_emit_fn with `ctx` the feed. All of a ring, and all rings of one target thread, come through one feed
 * at a time, in the order of the rings; the model is then the same as if dec_model_emit had been given ring
 * after ring. Not where inlined functions are calls. ST_ENOMEM. */
struct dec_model_feed;
int dec_model_feed_new(struct dec_model *m, struct dec_model_feed **feed, struct st_error *err);
void dec_model_feed_free(struct dec_model_feed *feed);
dec_emit_fn dec_model_feed_emit;

/* How many threads dec_model_end() may use: 1 if not said otherwise. */
void dec_model_threads(struct dec_model *m, unsigned threads);

/* Makes the calls of the samples that the side-band has. ST_ENOMEM; ST_EBADFILE: a sample that is damaged. */
int dec_model_samples(struct dec_model *m, struct st_error *err);

/* Every ring is decoded: builds what waited, closes stacks and gaps. ST_ENOMEM. */
int dec_model_end(struct dec_model *m, struct st_error *err);

/* For the line at the end and for --stats. */
struct dec_model_totals {
    uint64_t calls, gaps, stalls;

    uint64_t first, last; /* of what was decoded, perf ns */
};
struct dec_model_totals dec_model_totals(const struct dec_model *m);

#endif
