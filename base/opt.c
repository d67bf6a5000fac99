/* Table-driven options over getopt_long. */
#include "base/opt.h"
#include "base/complete.h"
#include "base/nearest.h"
#include "base/units.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OPTIONS = 64,
    HELP_CODE = 256,
    FIRST_CODE = 1024, /* above every letter; twice the index, odd: the --no- form */
};

struct getopt_table {
    struct option longs[2 * MOST_OPTIONS + 2];

    char letters[3 * MOST_OPTIONS + 4];

    char negated[MOST_OPTIONS][40];

    const char *words[2 * MOST_OPTIONS + 2]; /* those that people are told of */

    size_t n, nwords;
};

static void add_long(struct getopt_table *t, const char *name, bool arg, bool told, int code)
{
    t->longs[t->n] =
        (struct option){.name = name, .has_arg = arg ? required_argument : no_argument, .val = code};
    t->n++;
    if (told)
        t->words[t->nwords++] = name;
}

static void build(struct getopt_table *t, const struct st_option *table, bool stop_early)
{
    char *letter = t->letters;

    memset(t, 0, sizeof(*t));
    if (stop_early)
        *letter++ = '+';
    *letter++ = ':';
    *letter++ = 'h';
    add_long(t, "help", false, true, HELP_CODE);
    for (int i = 0; table[i].name && i < MOST_OPTIONS; i++) {
        const struct st_option *o = &table[i];

        add_long(t, o->name, o->arg != NULL, o->help != NULL, FIRST_CODE + 2 * i);
        if (o->negatable) {
            snprintf(t->negated[i], sizeof(t->negated[i]), "no-%s", o->name);
            add_long(t, t->negated[i], false, o->help != NULL, FIRST_CODE + 2 * i + 1);
        }
        if (o->letter) {
            *letter++ = o->letter;
            if (o->arg)
                *letter++ = ':';
        }
    }
}

static const struct st_option *find(const struct st_option *table, int code, bool *negated)
{
    *negated = false;
    if (code >= FIRST_CODE) {
        *negated = (code - FIRST_CODE) & 1;
        return &table[(code - FIRST_CODE) / 2];
    }
    for (; table->name; table++)
        if (table->letter == code)
            return table;
    return NULL;
}

static int store(const struct st_option *o, bool negated, const char *text, struct st_error *err)
{
    char what[48];

    snprintf(what, sizeof(what), "--%s", o->name);
    switch (o->kind) {
    case ST_OPT_FLAG:
        *(bool *)o->to = !negated;
        return 0;
    case ST_OPT_STRING:
        *(const char **)o->to = text;
        return 0;
    case ST_OPT_NUMBER:
        return st_parse_number(what, text, o->least, o->most, o->to, err);
    case ST_OPT_DURATION:
        if (st_parse_duration(text, o->to, err))
            return st_prefix(err, "%s: ", what);
        return 0;
    case ST_OPT_SIZE:
        if (st_parse_size(text, o->to, err))
            return st_prefix(err, "%s: ", what);
        return 0;
    case ST_OPT_CALL:
        return o->fn(o->to, text, err);
    }
    return st_fail(err, ST_EFAIL, "%s: option table is broken", what);
}

static void print_help(const struct st_opt_usage *usage, const struct st_option *table)
{
    printf("Usage: stalltrap %s %s\n%s\n\n", usage->command, usage->synopsis, usage->about);
    for (; table->name; table++) {
        char left[64];
        int n;

        if (!table->help)
            continue;
        n = table->letter ? snprintf(left, sizeof(left), "-%c, ", table->letter)
                          : snprintf(left, sizeof(left), "    ");
        snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s%s", table->negatable ? "[no-]" : "",
                 table->name, table->arg ? " " : "", table->arg ? table->arg : "");
        printf("  %-28s %s\n", left, table->help);
    }
    printf("  %-28s %s\n", "-h, --help", "show this and end");
}

static int reject(const struct getopt_table *t, const char *command, const char *word, int code,
                  struct st_error *err)
{
    const char *near;
    size_t len;

    if (code == ':')
        return st_fail(err, ST_EUSAGE, "%s needs an argument (stalltrap %s --help)", word, command);
    if (strncmp(word, "--", 2) != 0)
        return st_fail(err, ST_EUSAGE, "unknown option '-%c' (stalltrap %s --help)", optopt ? optopt : '?',
                       command);
    word += 2;
    len = strcspn(word, "=");
    near = st_nearest(word, len, t->words, t->nwords);
    if (near && !strncmp(near, word, len) && !near[len])
        return st_fail(err, ST_EUSAGE, "option '--%s' takes no argument", near);
    if (near)
        return st_fail(err, ST_EUSAGE, "unknown option '--%.*s': did you mean '--%s'?", (int)len, word, near);
    return st_fail(err, ST_EUSAGE, "unknown or ambiguous option '--%.*s' (stalltrap %s --help)", (int)len,
                   word, command);
}

int st_opt_parse(const struct st_opt_usage *usage, const struct st_option *table, int argc, char **argv,
                 bool stop_early, struct st_error *err)
{
    struct getopt_table t;

    if (st_completing()) {
        st_complete_options(usage, table);
        return 0;
    }
    build(&t, table, stop_early);
    optind = 0; /* glibc: start anew, with the letters' prefix read again */
    opterr = 0;
    for (;;) {
        int at = optind ? optind : 1;
        int code = getopt_long(argc, argv, t.letters, t.longs, NULL);
        const struct st_option *o;
        bool negated;
        int rc;

        if (code == -1)
            return optind;
        if (code == HELP_CODE || code == 'h') {
            print_help(usage, table);
            return 0;
        }
        o = code == '?' || code == ':' ? NULL : find(table, code, &negated);
        if (!o)
            return reject(&t, usage->command, argv[optind > at ? optind - 1 : at], code, err);
        rc = store(o, negated, optarg, err);
        if (rc)
            return rc;
    }
}

bool st_opt_had_dashes(char **argv, int first)
{
    return first > 1 && !strcmp(argv[first - 1], "--");
}
