/* The trigger language, by hand: every refusal points at its place. */
#include "triggers/language/parse.h"
#include "base/nearest.h"
#include "base/safetext.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_TEXT  160 /* bytes of a trigger that a message shows */
#define WORD_MAX    256
#define WORDS_MAX   600
#define LONGEST_NS  (24 * 3600 * 1000000000ull)
#define LONGEST_TXT "24h"

struct span {
    const char *at;

    size_t len;
};

struct parser {
    const char *text;

    struct trg_spec *spec;

    struct st_error *err;

    uint64_t keys_seen;
};

/* ---- refusals ---- */

/* Columns that `len` bytes take on a terminal once unprintable ones are escaped. */
static size_t columns(const char *text, size_t len)
{
    char part[SHOWN_TEXT + 1], safe[4 * SHOWN_TEXT + 1];
    size_t n = 0;

    snprintf(part, sizeof(part), "%.*s", (int)(len < SHOWN_TEXT ? len : SHOWN_TEXT), text);
    st_safe_text(safe, sizeof(safe), part);
    for (const char *p = safe; *p; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    return n;
}

/* The text and a line with carets under `where`. A long text is shown from near the place on. */
static void point(struct parser *p, struct span where)
{
    const char *from = p->text;
    char part[SHOWN_TEXT + 1], safe[4 * SHOWN_TEXT + 1], carets[SHOWN_TEXT + 1];
    size_t width, before, skipped = 0;

    if ((size_t)(where.at - from) > SHOWN_TEXT / 2) {
        skipped = 3;
        from = where.at - 20;
        while (((unsigned char)*from & 0xc0) == 0x80)
            from++;
    }
    snprintf(part, sizeof(part), "%s%s", skipped ? "..." : "", from);
    st_safe_text(safe, sizeof(safe), part);
    width = columns(where.at, where.len);
    if (width < 1)
        width = 1;
    if (width > 60)
        width = 60;
    memset(carets, '^', width);
    carets[width] = '\0';
    before = skipped + columns(from, (size_t)(where.at - from));
    st_hint(p->err, "%.200s", safe);
    st_hint(p->err, "%*s%s", (int)before, "", carets);
}

static int reject(struct parser *p, struct span where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int reject(struct parser *p, struct span where, const char *fmt, ...)
{
    char sentence[256], safe[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    st_safe_text(safe, sizeof(safe), sentence);
    st_fail(p->err, ST_EUSAGE, "--on: %s", safe);
    point(p, where);
    return ST_EUSAGE;
}

static int suggest(struct parser *p, struct span word, const char *const *words, size_t n)
{
    const char *near = st_nearest(word.at, word.len, words, n);

    if (near)
        st_hint(p->err, "did you mean '%s'?", near);
    return ST_EUSAGE;
}

/* The span as a string for a message or a look-up; cut at WORD_MAX. */
static const char *word_of(struct span s, char *buf)
{
    snprintf(buf, WORD_MAX, "%.*s", (int)s.len, s.at);
    return buf;
}

/* ---- kinds ---- */

static size_t kind_names(const char **out)
{
    size_t n = 0;

    for (; trg_kinds[n]; n++)
        out[n] = trg_kinds[n]->name;
    return n;
}

static int unknown_kind(struct parser *p, struct span word)
{
    const char *names[32];
    char buf[WORD_MAX], list[256] = "";
    size_t n = kind_names(names);

    for (size_t i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "", names[i]);
    if (!word.len)
        reject(p, word, "a trigger begins with its kind (%s)", list);
    else
        reject(p, word, "unknown kind of trigger '%s' (there is: %s)", word_of(word, buf), list);
    return suggest(p, word, names, n);
}

static int parse_kind(struct parser *p, const char **at)
{
    struct span word = {*at, strcspn(*at, ":><=, \t")};

    for (size_t i = 0; trg_kinds[i]; i++)
        if (strlen(trg_kinds[i]->name) == word.len && !strncmp(trg_kinds[i]->name, word.at, word.len))
            p->spec->kind = trg_kinds[i];
    if (!p->spec->kind)
        return unknown_kind(p, word);
    *at += word.len;
    return 0;
}

/* ---- names ---- */

static int no_name(struct parser *p, struct span here)
{
    reject(p, here, "'%s' needs %s", p->spec->kind->name, p->spec->kind->takes->expects);
    st_hint(p->err, "write it as %s", p->spec->kind->example);
    return ST_EUSAGE;
}

/* What is written, as it is meant: "..." keeps spaces and what ends a name, and so does '\\' the one
 * character behind it. Its length; the name is cut at TRG_NAME. word->len becomes that of what is written. */
static size_t read_name(struct span *word, char *name)
{
    const char *at = word->at;
    bool quoted = false;
    size_t n = 0;

    for (; *at && (quoted || !strchr(">,", *at)); at++) {
        if (*at == '"') {
            quoted = !quoted;
            continue;
        }
        if (*at == '\\' && at[1])
            at++;
        if (n < TRG_NAME - 1)
            name[n] = *at;
        n++;
    }
    name[n < TRG_NAME ? n : TRG_NAME - 1] = '\0';
    word->len = (size_t)(at - word->at);
    return n;
}

/* The next character of those that is not kept, from `at` on and before `end`; NULL: there is none. With ""
 * the quotation mark that nothing closes. */
static const char *find_bare(const char *at, const char *end, const char *those)
{
    const char *quote = NULL;

    for (; at < end; at++)
        if (*at == '"')
            quote = quote ? NULL : at;
        else if (*at == '\\' && at + 1 < end)
            at++;
        else if (!quote && strchr(those, *at))
            return at;
    return *those ? NULL : quote;
}

static int check_name(struct parser *p, struct span word)
{
    const char *space = find_bare(word.at, word.at + word.len, " \t");
    const char *quote = find_bare(word.at, word.at + word.len, "");
    char name[WORD_MAX], safe[4 * WORD_MAX];

    if (quote)
        return reject(p, (struct span){quote, 1}, "nothing closes the quotation mark");
    if (!space)
        return 0;
    reject(p, (struct span){space, 1}, "no spaces in a trigger, but in a name between double quotes");
    if (memchr(word.at, '"', word.len) || memchr(word.at, '\\', word.len))
        return ST_EUSAGE;
    st_safe_text(safe, sizeof(safe), word_of(word, name));
    return st_hint(p->err, "write it as %s:\"%s\"", p->spec->kind->name, safe);
}

static int parse_name(struct parser *p, const char **at)
{
    const struct trg_name *takes = p->spec->kind->takes;
    char name[TRG_NAME], buf[WORD_MAX];
    struct span word = {*at + 1, 0};
    const char *words[WORDS_MAX];
    size_t n;
    int rc;

    if (!takes || (!takes->needed && **at != ':'))
        return 0;
    if (**at != ':')
        return no_name(p, (struct span){*at, **at ? 1 : 0});
    n = read_name(&word, name);
    if (!n)
        return no_name(p, word);
    *at = word.at + word.len;
    rc = check_name(p, word);
    if (rc)
        return rc;
    if (n >= TRG_NAME)
        return reject(p, word, "a name of %zu characters: at most %d", n, TRG_NAME - 1);
    if (takes->set(p->spec->options, name))
        return 0;
    reject(p, word, "'%s' is not %s", word_of(word, buf), takes->expects);
    return suggest(p, word, words, takes->words(words, WORDS_MAX));
}

/* ---- thresholds ---- */

static int no_threshold(struct parser *p, const char *at)
{
    const struct trg_kind *kind = p->spec->kind;
    struct span here = {at, *at ? 1 : 0};

    if (*at == ':') {
        here.len = strcspn(at, ">,");
        reject(p, here, "'%s' takes no name", kind->name);
    } else if (*at == ' ' || *at == '\t') {
        here.len = strspn(at, " \t");
        reject(p, here, "no spaces in a trigger");
    } else if (*at == '<' || *at == '=') {
        reject(p, here, "'>' and a duration must follow '%s'", kind->name);
    } else {
        reject(p, here, "'%s' needs a threshold", kind->name);
    }
    st_hint(p->err, "write it as %s", kind->example);
    return ST_EUSAGE;
}

/* A kind whose every hit fires. */
static int unwanted_threshold(struct parser *p, const char *at)
{
    struct span here = {at, strcspn(at, ",")};

    if (!*at || *at == ',')
        return 0;
    if (*at == '>')
        reject(p, here, "'%s' takes no threshold: each hit fires", p->spec->kind->name);
    else if (*at == ' ' || *at == '\t')
        reject(p, (struct span){at, strspn(at, " \t")}, "no spaces in a trigger");
    else
        reject(p, here, "':' and a name must follow '%s'", p->spec->kind->name);
    st_hint(p->err, "write it as %s", p->spec->kind->example);
    return ST_EUSAGE;
}

/* Only the part behind the number is wrong. */
static int bad_unit(struct parser *p, struct span value)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "min", "h"};
    size_t digits = strspn(value.at, "0123456789.");
    struct span unit = {value.at + digits, value.len - digits};
    char number[WORD_MAX], buf[WORD_MAX];

    if (!unit.len) {
        reject(p, value, "a threshold needs a unit (ns, us, ms, s, m, h)");
        st_hint(p->err, "did you mean '%sms'?", word_of(value, number));
        return ST_EUSAGE;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (!strcmp(word_of(unit, buf), units[i]))
            return reject(p, value, "the threshold is too long: at most " LONGEST_TXT);
    reject(p, unit, "unknown unit '%s' (ns, us, ms, s, m, h)", word_of(unit, buf));
    return suggest(p, unit, units, sizeof(units) / sizeof(units[0]));
}

static int bad_threshold(struct parser *p, struct span value)
{
    static const char *const worst[] = {"worst"};
    size_t spaces = strcspn(value.at, " \t");
    char buf[WORD_MAX];

    if (!value.len)
        reject(p, value, "a duration must follow '>', as in %s", p->spec->kind->example);
    else if (*value.at == '=')
        reject(p, (struct span){value.at, 1}, "write '>', not '>='");
    else if (spaces < value.len)
        return reject(p, (struct span){value.at + spaces, strspn(value.at + spaces, " \t")},
                      "no spaces in a trigger");
    else if (*value.at >= '0' && *value.at <= '9' && value.at[1] != 'x' && value.at[1] != 'X')
        return bad_unit(p, value);
    else
        reject(p, value, "'%s' is no duration: write a number and a unit, as 20ms, or 'worst'",
               word_of(value, buf));
    return suggest(p, value, worst, 1);
}

static int parse_threshold(struct parser *p, const char **at)
{
    struct span value;
    char buf[WORD_MAX];

    if (p->spec->kind->hits) {
        int rc = unwanted_threshold(p, *at);

        *at += strcspn(*at, ",");
        return rc;
    }
    if (**at != '>')
        return no_threshold(p, *at);
    value.at = *at + 1;
    value.len = strcspn(value.at, ",");
    *at = value.at + value.len;
    if (value.len == 5 && !strncmp(value.at, "worst", 5)) {
        p->spec->worst = true;
        return 0;
    }
    if (value.len >= WORD_MAX)
        return reject(p, value, "a threshold of %zu characters", value.len);
    if (st_parse_duration(word_of(value, buf), &p->spec->threshold_ns, NULL))
        return bad_threshold(p, value);
    if (!p->spec->threshold_ns)
        return reject(p, value, "the threshold must be more than 0");
    if (p->spec->threshold_ns > LONGEST_NS)
        return reject(p, value, "the threshold is too long: at most " LONGEST_TXT);
    return 0;
}

/* ---- keys ---- */

static int unknown_key(struct parser *p, struct span name)
{
    const struct trg_key *keys = p->spec->kind->keys;
    const char *names[32];
    char buf[WORD_MAX];
    size_t n = 0;

    for (; keys[n].name; n++)
        names[n] = keys[n].name;
    if (!name.len)
        reject(p, name, "KEY=VALUE must follow ','");
    else
        reject(p, name, "'%s' has no key '%s'", p->spec->kind->name, word_of(name, buf));
    return suggest(p, name, names, n);
}

static const struct trg_key *find_key(struct parser *p, struct span name)
{
    const struct trg_key *key = p->spec->kind->keys;

    for (; key->name; key++)
        if (strlen(key->name) == name.len && !strncmp(key->name, name.at, name.len))
            return key;
    return NULL;
}

static int parse_word(struct parser *p, const struct trg_key *key, struct span word)
{
    const char *words[WORDS_MAX];
    char buf[WORD_MAX];

    if (!word.len)
        return reject(p, word, "%s= needs %s", key->name, key->expects);
    if (word.len < WORD_MAX && key->set(p->spec->options, word_of(word, buf)))
        return 0;
    reject(p, word, "%s=: '%s' is not %s", key->name, word_of(word, buf), key->expects);
    if (key->separator && *key->separator == '&' && word.len > strcspn(word.at, "=!<>&")) /* its left side */
        word.len = strcspn(word.at, "=!<>&");
    return suggest(p, word, words, key->words(words, WORDS_MAX));
}

static int parse_words(struct parser *p, const struct trg_key *key, struct span value)
{
    const char *end = value.at + value.len;
    struct span word = {value.at, 0};
    int rc = 0;

    for (;;) {
        size_t left = (size_t)(end - word.at);
        const char *next =
            key->separator ? memmem(word.at, left, key->separator, strlen(key->separator)) : NULL;

        word.len = next ? (size_t)(next - word.at) : left;
        rc = parse_word(p, key, word);
        if (rc || !next)
            return rc;
        word.at = next + strlen(key->separator);
    }
}

/* KEY=VALUE, or, behind a key that takes a list, one more VALUE. */
static int parse_item(struct parser *p, struct span item, const struct trg_key **last)
{
    const char *equals = memchr(item.at, '=', item.len);
    struct span name = {item.at, equals ? (size_t)(equals - item.at) : item.len};
    const struct trg_key *key = find_key(p, name);
    uint64_t bit;

    if (!equals && item.len && !key && *last && (*last)->separator)
        return parse_words(p, *last, item);
    if (!key)
        return unknown_key(p, name);
    if (!equals)
        return reject(p, (struct span){item.at + item.len, 0}, "%s needs '=' and %s", key->name,
                      key->expects);
    bit = 1ull << (key - p->spec->kind->keys);
    if (p->keys_seen & bit)
        return reject(p, name, "%s= was given before", key->name);
    p->keys_seen |= bit;
    *last = key;
    return parse_words(p, key, (struct span){equals + 1, item.len - name.len - 1});
}

static int parse_items(struct parser *p, const char *at)
{
    const struct trg_key *last = NULL;
    int rc = 0;

    while (!rc && *at == ',') {
        struct span item = {at + 1, strcspn(at + 1, ",")};

        rc = parse_item(p, item, &last);
        at = item.at + item.len;
    }
    return rc;
}

/* ---- the whole ---- */

bool trg_can_learn(const struct trg_kind *kind)
{
    for (const struct trg_key *key = kind->keys; key && key->name; key++)
        if (key->set == trg_set_idle)
            return true;
    return false;
}

static int make_options(struct parser *p)
{
    struct trg_spec *spec = p->spec;

    spec->text = strdup(p->text);
    spec->options = calloc(1, sizeof(*spec->options));
    if (!spec->text || !spec->options)
        return st_nomem(p->err, "a trigger");
    trg_default_options(spec->options);
    spec->options->learn_idle = trg_can_learn(spec->kind);
    return 0;
}

int trg_parse(const char *text, struct trg_spec *spec, struct st_error *err)
{
    struct st_error unheard = {0};
    struct parser p = {.text = text, .spec = spec, .err = err ? err : &unheard};
    const char *at = text;
    int rc;

    memset(spec, 0, sizeof(*spec));
    rc = parse_kind(&p, &at);
    if (!rc)
        rc = make_options(&p);
    if (!rc)
        rc = parse_name(&p, &at);
    if (!rc)
        rc = parse_threshold(&p, &at);
    if (!rc)
        rc = parse_items(&p, at);
    if (rc)
        trg_spec_free(spec);
    return rc;
}

void trg_spec_free(struct trg_spec *spec)
{
    free(spec->text);
    free(spec->options);
    memset(spec, 0, sizeof(*spec));
}
