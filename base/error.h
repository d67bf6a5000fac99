/* How every fallible function of stalltrap reports: a code for the caller, a sentence for the user. */
#ifndef ST_BASE_ERROR_H
#define ST_BASE_ERROR_H

#include <stddef.h>

/* What a failing function returns. Zero is success; positive values are free for a function's own use. */
enum st_code {
    ST_OK = 0,

    ST_EFAIL = -1, /* it was tried and failed; exit status 1 */

    ST_EUSAGE = -2, /* the words on the command line are wrong; exit status 2 */

    ST_ECANNOT = -3, /* this machine or this user cannot; exit status 3 */

    ST_ETIMEOUT = -4, /* the time ran out, or the target ended, and nothing fired; exit status 4 */

    ST_ENOMEM = -5, /* an allocation failed; exit status 1 */

    ST_EBADFILE = -6, /* a file is not what its format promises; exit status 1 */
};

/* The sentence, and after "\n  " any hints. Owned by the caller, usually on its stack; needs no release.
 * Initialise with {0}. A function fills it only when it returns a negative code. */
struct st_error {
    int code;

    char text[1024];
};

/* Sets code and text and returns code, so that `return st_fail(...)` reads well. The sentence names what was
 * tried, on what, and why it failed. err may be NULL (the text is dropped). A text that does not fit is cut.
 */
int st_fail(struct st_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As st_fail, with ": " and the description of errno (as it was at the call) behind the sentence. */
int st_fail_errno(struct st_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* An allocation for `what` failed: returns ST_ENOMEM. */
int st_nomem(struct st_error *err, const char *what);

/* Puts a sentence before the text that is there ("reading x.data: " ...). Returns err->code. */
int st_prefix(struct st_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds what the user can do, on a line of its own. Returns err->code. */
int st_hint(struct st_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit status that stands for a code: 0, 1, 2, 3 or 4 (see the manual page stalltrap(1), EXIT STATUS). */
int st_exit_status(int code);

#endif
