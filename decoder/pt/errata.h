/* Errata of Intel PT, by CPU model. libipt names them (intel-pt.h, struct pt_errata) after the specification
 * updates of the processors that had them first; that of Debian 12 does not know the processors from 2021 on.
 */
#ifndef ST_DECODER_PT_ERRATA_H
#define ST_DECODER_PT_ERRATA_H

#include "decoder/pt/flow.h"

#include <intel-pt.h>

/* None for a CPU that is not known.
 *
 * What is done about each: BDM64, a branch before an abort went elsewhere (walk.c); BDM70, a PSB+ says too
 * early that tracing is on (libipt, fast_psb.c); SKD007, an OVF within a CYC (libipt, times.c; the fast walk
 * leaves it); SKD010, an OVF without its FUP (libipt); SKD022, a FUP of a VM entry that ends tracing
 * (walk_events.c); SKL014, no address where a direct branch left the filter (walk.c); APL11 and APL12, a
 * TIP.PGD or FUP too many behind an OVF (libipt); SKL168, a CYC lost before a PSB (its TSC bounds what that
 * makes); SKZ84, a damaged TMA (libipt, times.c). The fast walk leaves overflows to libipt on CPUs with
 * SKD007, SKD010, APL11 or APL12. */
void pt_errata_of(const struct dec_pt_config *config, struct pt_errata *errata);

#endif
