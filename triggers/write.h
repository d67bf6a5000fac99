/* What a program writes into a descriptor, as marks (--mark write:FD). It is no trigger, and in no table. */
#ifndef ST_TRIGGERS_WRITE_H
#define ST_TRIGGERS_WRITE_H

#include "triggers/language/kind.h"

/* Takes the number of a descriptor, in decimal, into options->name. False: it is none. */
bool trg_set_descriptor(struct trg_options *options, const char *word);

extern const struct trg_kind trg_write;

#endif
