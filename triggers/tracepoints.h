/* Tracepoints as tracefs tells of them (Documentation/trace/events.rst): names, and the fields of their
 * records. */
#ifndef ST_TRIGGERS_TRACEPOINTS_H
#define ST_TRIGGERS_TRACEPOINTS_H

#include "triggers/kit.h"

#define TRG_SHOWN 6

struct trg_tracepoint {
    char category[64], name[128];

    bool raw; /* tracefs is not there: no fields */

    struct filter_term shown[TRG_SHOWN]; /* its first numbers */

    char shown_name[TRG_SHOWN][24];

    uint32_t shown_n;
};

/* Finds "CATEGORY:NAME" and gives the filter's fields their places. ST_EUSAGE names the nearest word;
 * ST_ECANNOT: tracefs is not there and it is needed. */
int trg_find_tracepoint(const char *what, const struct trg_options *options, struct trg_tracepoint *t,
                        struct filter *filter, struct st_error *err);

/* Whether there are descriptions of tracepoints: 0 or ST_ECANNOT. */
int trg_check_tracefs(struct st_error *err);

/* trg_name.set: CATEGORY:NAME. */
bool trg_set_tracepoint(struct trg_options *o, const char *word);

/* Attaches the one of the two programs that was loaded. */
int trg_attach_tracepoint(struct trg_state *s, const struct trg_tracepoint *t, struct bpf_program *prog,
                          struct bpf_program *raw, struct st_error *err);

#endif
