/* The call chain of user code out of a sample's registers and its piece of the stack, by the unwind tables
 * (.eh_frame) of the code files: for programs without frame pointers. libdw does the work. */
#ifndef ST_DECODER_DWARF_UNWIND_H
#define ST_DECODER_DWARF_UNWIND_H

#include "decoder/image/space.h"
#include "perfdata/reader.h"

#include <stddef.h>
#include <stdint.h>

enum { DEC_UNWIND_MOST = 256 }; /* frames */

struct dec_unwind;

/* ST_ENOMEM. */
int dec_unwind_new(struct dec_unwind **unwind, struct st_error *err);

/* The addresses of a sample's frames, the innermost first, the others where their callee returns to. `mask`
 * is attr.sample_regs_user. Ends where the tables or the piece of the stack do: at least the innermost is
 * there, unless the sample has no registers (0). */
size_t dec_unwind_sample(struct dec_unwind *unwind, const struct dec_space *space,
                         const struct pd_sample *sample, uint64_t mask, uint64_t frames[DEC_UNWIND_MOST]);

/* NULL is allowed. */
void dec_unwind_free(struct dec_unwind *unwind);

#endif
