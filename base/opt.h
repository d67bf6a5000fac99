/* A subcommand's options as a table: parsing, the help text and "did you mean" come from it. */
#ifndef ST_BASE_OPT_H
#define ST_BASE_OPT_H

#include "base/complete.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum st_opt_kind {
    ST_OPT_FLAG,     /* bool *: set true; with --no-NAME (see `negatable`) false */
    ST_OPT_STRING,   /* const char **: points into argv */
    ST_OPT_NUMBER,   /* long *: within [least, most] */
    ST_OPT_DURATION, /* uint64_t *: ns */
    ST_OPT_SIZE,     /* uint64_t *: bytes */
    ST_OPT_CALL,     /* fn(to, text, err) is called, once an occurrence, in order */
};

/* Receives an ST_OPT_CALL option's argument (NULL when `arg` of the option is NULL). Returns 0 or a negative
 * st_code. */
typedef int st_opt_fn(void *to, const char *text, struct st_error *err);

struct st_option {
    const char *name; /* without the dashes; NULL ends the table */

    char letter; /* 0: none */

    const char *arg; /* what the help calls the argument ("DUR"); NULL: takes none */

    enum st_opt_kind kind;

    void *to;

    const char *help; /* one line; NULL: the option is for our own programs, and not told of */

    long least, most; /* ST_OPT_NUMBER */

    st_opt_fn *fn; /* ST_OPT_CALL */

    bool negatable; /* ST_OPT_FLAG: --no-NAME exists */
};

struct st_opt_usage {
    const char *command; /* "arm" */

    const char *synopsis; /* "[TARGET] [--on TRIGGER]... [OPTION]..." */

    const char *about; /* one or two lines */

    const struct st_completer *completers; /* for the shells; NULL: the table says enough */
};

/* Parses argv[1..argc). Options may stand anywhere before "--"; the rest stays. --help prints the help to
 * stdout. Returns the index of the first operand in argv (operands are moved to the end, in order), 0 when
 * help was printed and the caller should end with success, or ST_EUSAGE with the place and the nearest
 * option. Where the shell asks what may stand there (st_complete_begin), that is printed and 0 returned.
 * argv[0] is the command's name. With `stop_early` true, parsing ends at the first operand. */
int st_opt_parse(const struct st_opt_usage *usage, const struct st_option *table, int argc, char **argv,
                 bool stop_early, struct st_error *err);

/* Whether "--" stood before the operands that st_opt_parse returned as `first`. */
bool st_opt_had_dashes(char **argv, int first);

#endif
