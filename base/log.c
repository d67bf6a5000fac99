/* Messages on stderr. */
#include "base/log.h"
#include "base/progress.h"
#include "base/safetext.h"

#include <stdarg.h>
#include <stdio.h>

static enum st_log_level current_level = ST_LOG_NORMAL;

void st_log_level(enum st_log_level level)
{
    current_level = level;
}

static void put_line(const char *prefix, const char *fmt, va_list ap)
{
    char text[2048];
    char safe[4096];

    vsnprintf(text, sizeof(text), fmt, ap);
    st_safe_lines(safe, sizeof(safe), text);
    st_progress_hide();
    fprintf(stderr, "%s%s\n", prefix, safe);
}

void st_log_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_line("stalltrap: warning: ", fmt, ap);
    va_end(ap);
}

void st_log_info(const char *fmt, ...)
{
    va_list ap;

    if (current_level < ST_LOG_NORMAL)
        return;
    va_start(ap, fmt);
    put_line("", fmt, ap);
    va_end(ap);
}

void st_log_debug(const char *fmt, ...)
{
    va_list ap;

    if (current_level < ST_LOG_VERBOSE)
        return;
    va_start(ap, fmt);
    put_line("stalltrap: ", fmt, ap);
    va_end(ap);
}

int st_log_error(const char *command, const struct st_error *err)
{
    char safe[sizeof(err->text) * 2];

    st_safe_lines(safe, sizeof(safe), err->text);
    st_progress_hide();
    if (command)
        fprintf(stderr, "stalltrap %s: %s\n", command, safe);
    else
        fprintf(stderr, "stalltrap: %s\n", safe);
    return st_exit_status(err->code);
}
