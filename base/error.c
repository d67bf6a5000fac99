/* Error codes and sentences. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set_text(struct st_error *err, int code, const char *fmt, va_list ap)
{
    err->code = code;
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
}

static void append(struct st_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(struct st_error *err, const char *fmt, ...)
{
    size_t used = strlen(err->text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err->text + used, sizeof(err->text) - used, fmt, ap);
    va_end(ap);
}

int st_fail(struct st_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    set_text(err, code, fmt, ap);
    va_end(ap);
    return code;
}

int st_fail_errno(struct st_error *err, int code, const char *fmt, ...)
{
    int saved = errno;
    char reason[128];
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    set_text(err, code, fmt, ap);
    va_end(ap);
    append(err, ": %s", strerror_r(saved, reason, sizeof(reason)));
    return code;
}

int st_nomem(struct st_error *err, const char *what)
{
    return st_fail(err, ST_ENOMEM, "out of memory for %s", what);
}

int st_prefix(struct st_error *err, const char *fmt, ...)
{
    struct st_error old;
    va_list ap;

    if (!err)
        return ST_EFAIL;
    old = *err;
    va_start(ap, fmt);
    set_text(err, old.code, fmt, ap);
    va_end(ap);
    append(err, "%s", old.text);
    return err->code;
}

int st_hint(struct st_error *err, const char *fmt, ...)
{
    char hint[512];
    va_list ap;

    if (!err)
        return ST_EFAIL;
    va_start(ap, fmt);
    vsnprintf(hint, sizeof(hint), fmt, ap);
    va_end(ap);
    append(err, "\n  %s", hint);
    return err->code;
}

int st_exit_status(int code)
{
    switch (code) {
    case ST_EUSAGE:
        return 2;
    case ST_ECANNOT:
        return 3;
    case ST_ETIMEOUT:
        return 4;
    default:
        return code < 0 ? 1 : 0;
    }
}
