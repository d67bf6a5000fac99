/* How long the instruction at an address is: where a call returns to, for events that do not say it. And
 * whether a call is what ends at one. */
#ifndef ST_DECODER_MODEL_LENGTH_H
#define ST_DECODER_MODEL_LENGTH_H

#include "base/error.h"
#include "decoder/image/space.h"

#include <stdbool.h>
#include <stdint.h>

struct dec_lengths;

/* `bits` 32 or 64 (0: 64). ST_ENOMEM. */
int dec_lengths_new(unsigned bits, struct dec_lengths **lengths, struct st_error *err);
void dec_lengths_free(struct dec_lengths *lengths);

/* In bytes; 0: there is no code, or none that can be decoded. */
unsigned dec_length_at(struct dec_lengths *l, const struct dec_space *space, uint64_t time, uint64_t address);

/* Whether the bytes before an address are those of a near call (Intel SDM, volume 2, "CALL"), so that the
 * address is one that calls return to. False too where there is no code. */
bool dec_call_before(const struct dec_lengths *l, const struct dec_space *space, uint64_t time,
                     uint64_t address);

#endif
