/* The trigger language for the shells' completions, from the table of kinds. */
#include "triggers/language/kind.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 1024 };

static const struct trg_kind *find_kind(const char *text)
{
    size_t len = strcspn(text, ":>,");

    for (size_t i = 0; trg_kinds[i]; i++)
        if (text[len] && strlen(trg_kinds[i]->name) == len && !strncmp(trg_kinds[i]->name, text, len))
            return trg_kinds[i];
    return NULL;
}

static void complete_kind(struct st_completion *c)
{
    char word[64], about[128];

    for (size_t i = 0; trg_kinds[i]; i++) {
        const struct trg_kind *kind = trg_kinds[i];

        snprintf(about, sizeof(about), "as %s", kind->example);
        snprintf(word, sizeof(word), "%s:", kind->name);
        if (kind->takes)
            st_complete_word(c, word, kind->takes->needed ? about : kind->takes->expects);
        snprintf(word, sizeof(word), "%s>", kind->name);
        if (!kind->hits && !(kind->takes && kind->takes->needed))
            st_complete_word(c, word, about);
    }
}

/* Words of a table, each followed by `behind`. */
static void complete_words(struct st_completion *c, size_t (*words)(const char **, size_t),
                           const char *behind)
{
    const char *known[MOST_WORDS];
    size_t n = words(known, MOST_WORDS);
    char word[64];

    for (size_t i = 0; i < n; i++) {
        snprintf(word, sizeof(word), "%s%s", known[i], behind);
        st_complete_word(c, word, NULL);
    }
}

static void complete_key(struct st_completion *c, const struct trg_kind *kind)
{
    struct st_completion part = st_complete_behind(c, ",");
    const char *value = strchr(part.text, '=');
    char word[64];

    for (const struct trg_key *key = kind->keys; key && key->name; key++) {
        snprintf(word, sizeof(word), "%s=", key->name);
        if (!value)
            st_complete_word(&part, word, key->expects);
        else if (!strncmp(part.text, word, strlen(word))) {
            part.text = value + 1;
            part = st_complete_behind(&part, key->separator ? key->separator : "");
            complete_words(&part, key->words, "");
            return;
        }
    }
}

/* Behind '>': the example's duration, and "worst". */
static void complete_threshold(struct st_completion *c, const struct trg_kind *kind)
{
    struct st_completion part = st_complete_behind(c, ">");
    const char *example = strchr(kind->example, '>');

    if (example)
        st_complete_word(&part, example + 1, "longer than that");
    if (!kind->hits)
        st_complete_word(&part, "worst", "each that is longer than all before it");
}

void trg_complete_word(struct st_completion *c)
{
    const struct trg_kind *kind = find_kind(c->text);
    struct st_completion name = *c;

    if (!kind)
        complete_kind(c);
    else if (strchr(c->text, ','))
        complete_key(c, kind);
    else if (strchr(c->text, '>'))
        complete_threshold(c, kind);
    else if (kind->takes) {
        name.text += strlen(kind->name) + 1;
        complete_words(&name, kind->takes->words, kind->hits ? "" : ">");
    }
}
