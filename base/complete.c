/* What may stand next on a command line: the walk over the words before it. */
#include "base/complete.h"
#include "base/opt.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static struct {
    char **words; /* the last is being written */

    int n; /* 0: nobody asks */
} asked;

void st_complete_begin(int n, char **words)
{
    asked.n = n;
    asked.words = words;
}

bool st_completing(void)
{
    return asked.n > 0;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return true;
    return false;
}

void st_complete_word(struct st_completion *c, const char *word, const char *about)
{
    if (strncmp(word, c->text, strlen(c->text)) != 0 || has_control(word))
        return;
    printf("%.*s%s\t%s\n", (int)(c->text - c->whole), c->whole, word, about ? about : "");
}

struct st_completion st_complete_behind(const struct st_completion *c, const char *separators)
{
    struct st_completion part = *c;

    while (part.text[strcspn(part.text, separators)])
        part.text += strcspn(part.text, separators) + 1;
    return part;
}

/* Lines that begin with a tab are for the shell itself: no word does. */
void st_complete_files(const char *suffix)
{
    printf("\tfiles\t%s\n", suffix);
}

void st_complete_folders(void)
{
    printf("\tfolders\t\n");
}

void st_complete_command(const struct st_completion *c)
{
    printf("\tcommand\t%d\n", c->command);
}

void st_complete_trace(struct st_completion *c)
{
    if (!c->operand)
        st_complete_files(".db");
}

void st_complete_target(struct st_completion *c)
{
    if (c->dashes)
        st_complete_command(c);
    else
        st_complete_pids(c);
}

/* ---- options ---- */

static const struct st_option *find_long(const struct st_option *table, const char *name, size_t len)
{
    for (; table->name; table++)
        if (strlen(table->name) == len && !strncmp(table->name, name, len))
            return table;
    return NULL;
}

/* The option of "--NAME", "-x" or "-abx" whose argument the next word is, or NULL. */
static const struct st_option *awaits(const struct st_option *table, const char *word)
{
    const struct st_option *o = NULL;

    if (!strncmp(word, "--", 2)) {
        o = find_long(table, word + 2, strlen(word + 2));
        return o && o->arg ? o : NULL;
    }
    for (const char *letter = word + 1; *letter; letter++) {
        for (o = table; o->name && o->letter != *letter; o++)
            ;
        if (!o->name)
            return NULL;
        if (o->arg)
            return letter[1] ? NULL : o;
    }
    return NULL;
}

static void list_options(struct st_completion *c, const struct st_option *table)
{
    char name[64];

    for (const struct st_option *o = table; o->name; o++) {
        if (!o->help)
            continue;
        snprintf(name, sizeof(name), "--%s", o->name);
        st_complete_word(c, name, o->help);
        snprintf(name, sizeof(name), "--no-%s", o->name);
        if (o->negatable)
            st_complete_word(c, name, o->help);
    }
    st_complete_word(c, "--help", "show this and end");
}

/* "fp|dwarf|lbr": the words themselves. */
static void list_choices(struct st_completion *c, const char *arg)
{
    char word[32];

    for (; *arg; arg += strcspn(arg, "|"), arg += *arg == '|') {
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg, "|"), arg);
        st_complete_word(c, word, NULL);
    }
}

/* Where no completer is, what the help calls the argument says what it is. */
static void complete_by_name(struct st_completion *c, const struct st_option *o)
{
    static const char *const files[] = {"FILE", "TRACE", "LIST", "PREFIX"};

    if (!strcmp(o->arg, "DIR"))
        st_complete_folders();
    else if (strchr(o->arg, '|') && !strpbrk(o->arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        list_choices(c, o->arg);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (!strncmp(o->arg, files[i], strlen(files[i])))
            st_complete_files("");
}

/* Of an option's argument; `o` NULL: of an operand. */
static void complete_value(struct st_completion *c, const struct st_completer *completers,
                           const struct st_option *o)
{
    for (; completers && completers->fn; completers++)
        if (o ? completers->option && !strcmp(completers->option, o->name) : !completers->option) {
            completers->fn(c);
            return;
        }
    if (o)
        complete_by_name(c, o);
}

/* Walks over what stands before the last word. Returns the option whose argument the last word is, or NULL.
 */
static const struct st_option *walk(struct st_completion *c, const struct st_option *table)
{
    const struct st_option *open = NULL;

    for (int i = 0; i < asked.n - 1; i++) {
        const char *word = asked.words[i];

        if (open)
            open = NULL;
        else if (c->dashes || word[0] != '-' || !word[1])
            c->operand++;
        else if (!strcmp(word, "--")) {
            c->dashes = true;
            c->command = i + 3; /* behind the program, the subcommand and the dashes */
            c->operand = 0;
        } else
            open = awaits(table, word);
    }
    return open;
}

void st_complete_options(const struct st_opt_usage *usage, const struct st_option *table)
{
    struct st_completion c = {.whole = asked.words[asked.n - 1]};
    const struct st_option *o = walk(&c, table);
    size_t len = strcspn(c.whole, "=");

    c.text = c.whole;
    if (!o && !c.dashes && !strncmp(c.whole, "--", 2) && c.whole[len]) {
        o = find_long(table, c.whole + 2, len - 2);
        c.text += len + 1;
        if (!o || !o->arg)
            return;
    }
    if (!o && !c.dashes && *c.whole == '-')
        list_options(&c, table);
    else
        complete_value(&c, usage->completers, o);
}
