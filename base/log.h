/* Messages for the person at the terminal: always to stderr, never raw foreign bytes. */
#ifndef ST_BASE_LOG_H
#define ST_BASE_LOG_H

#include "base/error.h"

/* How much is said: errors and warnings always, information unless -q, details with -v. */
enum st_log_level { ST_LOG_QUIET, ST_LOG_NORMAL, ST_LOG_VERBOSE };

/* Sets the level for the whole process. Not for use once threads run. */
void st_log_level(enum st_log_level level);

/* A line "stalltrap: ..." on stderr; unprintable bytes in it are escaped (base/safetext.h), newlines stay. */
void st_log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void st_log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void st_log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints err's sentence as "stalltrap COMMAND: ..." (command may be NULL) and returns
 * st_exit_status(err->code). */
int st_log_error(const char *command, const struct st_error *err);

#endif
