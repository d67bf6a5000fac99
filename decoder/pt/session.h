/* What the rings of one decode share of the walk: lent to one ring after the other, and to several at once.
 */
#ifndef ST_DECODER_PT_SESSION_H
#define ST_DECODER_PT_SESSION_H

#include "decoder/pt/fast.h"

/* What a ring is lent. */
struct session_lent {
    struct fast *fast; /* NULL: there is no room for its tables */

    struct code *code; /* runs that libipt's walk kept */

    struct session_graph *graph; /* inside */
};

/* ST_ENOMEM. To be given back by session_return(). */
int session_lend(struct dec_session *session, struct walk *w, struct session_lent *lent,
                 struct st_error *err);
void session_return(struct dec_session *session, struct session_lent *lent);

#endif
