/* What libipt's decoders are told of a trace. */
#ifndef ST_DECODER_PT_CONFIG_H
#define ST_DECODER_PT_CONFIG_H

#include "decoder/pt/flow.h"

#include <intel-pt.h>

/* Of some of its bytes, which stay the caller's and are only read; with the errata of the CPU that recorded
 * them. */
void pt_configure(struct pt_config *to, const struct dec_pt_config *from, const uint8_t *bytes, size_t size);

#endif
