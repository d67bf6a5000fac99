/* The trigger language: KIND>DURATION[,KEY=VALUE...] (docs/triggers.md). */
#ifndef ST_TRIGGERS_LANGUAGE_PARSE_H
#define ST_TRIGGERS_LANGUAGE_PARSE_H

#include "triggers/language/kind.h"

/* Reads one trigger. ST_EUSAGE: the sentence, then the text and a caret line under the place, then the
 * nearest known word where there is one. On error *spec is zeroed and owns nothing; else trg_spec_free() it.
 */
int trg_parse(const char *text, struct trg_spec *spec, struct st_error *err);

/* Frees what the spec owns and zeroes it. */
void trg_spec_free(struct trg_spec *spec);

#endif
