/* Which source records. */
#ifndef ST_RECORDER_SOURCES_SOURCES_H
#define ST_RECORDER_SOURCES_SOURCES_H

#include "base/complete.h"
#include "recorder/sources/source.h"

/* The source of that name that can (its probe says so); "auto": the first that can of those that disturb the
 * target little. ST_EUSAGE: no such name. ST_ECANNOT: it is not built, or this machine or user cannot, with
 * the reasons. */
int rec_source_choose(const char *name, const struct rec_source_config *config,
                      const struct rec_source_ops **ops, struct st_error *err);

/* What the choice of "auto" costs, for the armed line: "" for the best there is, else " (...)". Static. */
const char *rec_source_instead(const char *name, const struct rec_source_ops *ops);

/* What may stand behind --source (base/complete.h). */
void rec_source_complete(struct st_completion *c);

#endif
