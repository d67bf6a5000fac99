/* What is looked up or changed in a run of bytes before it is walked. */
#ifndef ST_DECODER_PT_PREPARE_H
#define ST_DECODER_PT_PREPARE_H

#include "decoder/pt/pieces.h"

/* Takes the packets of Event Trace out of a run (SDM, Intel PT, "Event Trace"), which libipt 2.0.5 does not
 * know: CFE and EVD become PAD packets. A CFE or a MODE.Exec (of the interrupt flag) that is followed by a
 * FUP of its own, which no TIP answers, becomes an EXSTOP packet with an address: that one binds to its FUP
 * in the same way, and says nothing about the flow either. *found: there were any; the run's bytes are then a
 * copy. Nothing is changed that does not follow a PSB packet without a break. ST_ENOMEM. */
int pt_take_event_trace(struct pt_run *run, bool *found, struct st_error *err);

/* Whether a PIP packet with NR=1 means that a guest runs. A CPU that traces its host tells of both sides; in
 * a guest that traces itself all are NR=1, and the code is its own. */
bool pt_run_has_guests(const struct pt_run *run);

#endif
