/* The keys of all kinds: state=, idle=, side=, if=. */
#include "triggers/language/options.h"
#include "base/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word_bit {
    const char *word;

    uint32_t bit;
};

static const struct word_bit states[] = {
    {"blocked", OFFCPU_BLOCKED}, {"sleeping", OFFCPU_SLEEPING}, {"preempted", OFFCPU_PREEMPTED}};

static const struct word_bit sides[] = {
    {"unread", SOCKET_UNREAD}, {"unsent", SOCKET_UNSENT}, {"unaccepted", SOCKET_UNACCEPTED}};

/* Waits for work, not stalls. read and recv* are not among them: who calls these wants the data now. futex
 * and io_uring_enter are looked at more closely in the kernel (FUTEX_WAIT_BITSET, GETEVENTS). restart_syscall
 * is one of these that a signal or a tracer interrupted. */
static const char *const idle_syscalls[] = {
    "epoll_wait", "epoll_wait_old",  "epoll_pwait",   "epoll_pwait2",    "poll",
    "ppoll",      "select",          "pselect6",      "accept",          "accept4",
    "nanosleep",  "clock_nanosleep", "pause",         "rt_sigtimedwait", "wait4",
    "waitid",     "restart_syscall", "rt_sigsuspend",
};

/* The same of i386; accept hides in socketcall there and is not seen. */
static const char *const idle_syscalls32[] = {
    "restart_syscall",
    "waitpid",
    "pause",
    "select",
    "wait4",
    "_newselect",
    "nanosleep",
    "poll",
    "rt_sigtimedwait",
    "epoll_wait",
    "clock_nanosleep",
    "waitid",
    "pselect6",
    "ppoll",
    "epoll_pwait",
    "accept4",
    "clock_nanosleep_time64",
    "pselect6_time64",
    "sigsuspend",
    "rt_sigsuspend",
    "ppoll_time64",
    "rt_sigtimedwait_time64",
    "epoll_pwait2",
};

static void add(uint64_t *set, int number)
{
    set[number / 64] |= 1ull << (number % 64);
}

void trg_default_options(struct trg_options *o)
{
    for (size_t i = 0; i < sizeof(idle_syscalls) / sizeof(idle_syscalls[0]); i++)
        add(o->idle, st_syscall_number(idle_syscalls[i], false));
    for (size_t i = 0; i < sizeof(idle_syscalls32) / sizeof(idle_syscalls32[0]); i++)
        add(o->idle32, st_syscall_number(idle_syscalls32[i], true));
}

static bool add_bit(const struct word_bit *words, size_t n, const char *word, uint32_t *bits)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(words[i].word, word)) {
            *bits |= words[i].bit;
            return true;
        }
    return false;
}

static size_t list_bits(const struct word_bit *words, size_t n, const char **out, size_t room)
{
    size_t i = 0;

    for (; i < n && i < room; i++)
        out[i] = words[i].word;
    return i;
}

bool trg_set_state(struct trg_options *o, const char *word)
{
    return add_bit(states, sizeof(states) / sizeof(states[0]), word, &o->states);
}

size_t trg_state_words(const char **out, size_t room)
{
    return list_bits(states, sizeof(states) / sizeof(states[0]), out, room);
}

bool trg_set_side(struct trg_options *o, const char *word)
{
    return add_bit(sides, sizeof(sides) / sizeof(sides[0]), word, &o->sides);
}

size_t trg_side_words(const char **out, size_t room)
{
    return list_bits(sides, sizeof(sides) / sizeof(sides[0]), out, room);
}

bool trg_set_idle(struct trg_options *o, const char *word)
{
    if (!strcmp(word, "learned")) {
        o->learn_idle = o->show_places = true;
        return true;
    }
    if (!strcmp(word, "list"))
        o->learn_idle = false;
    return trg_set_idle_list(o, word);
}

size_t trg_idle_words(const char **out, size_t room)
{
    out[0] = "learned";
    return 1 + trg_idle_list_words(out + 1, room - 1);
}

bool trg_set_idle_list(struct trg_options *o, const char *word)
{
    int number = st_syscall_number(word, false);
    bool all = !strcmp(word, "yes") || !strcmp(word, "none");

    o->count_idle |= all;
    if (number >= 0)
        add(o->idle, number);
    return all || number >= 0 || !strcmp(word, "list");
}

size_t trg_idle_list_words(const char **out, size_t room)
{
    out[0] = "yes";
    out[1] = "none";
    out[2] = "list";
    return 3 + st_syscall_names(out + 3, room - 3);
}

/* ---- if= ---- */

/* The operator at the head of `at`; its length, or 0. */
static size_t operator(const char *at, uint32_t *op)
{
    static const struct {
        const char *text;

        enum filter_op op;
    } ops[] = {{"==", FILTER_EQ}, {"!=", FILTER_NE}, {"<=", FILTER_LE}, {">=", FILTER_GE},
               {"<", FILTER_LT},  {">", FILTER_GT},  {"&", FILTER_HAS}};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (!strncmp(at, ops[i].text, strlen(ops[i].text))) {
            *op = ops[i].op;
            return strlen(ops[i].text);
        }
    return 0;
}

static bool set_number(struct filter_term *t, const char *text)
{
    char *end;

    if (!strchr("-0123456789", *text))
        return false;
    errno = 0;
    t->value = *text == '-' ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
    return *text && !*end && !errno && end[-1] != '-';
}

/* "text", or 'text'. */
static bool set_text(struct filter_term *t, const char *text)
{
    size_t len = strlen(text);

    if (len < 2 || len - 2 >= FILTER_TEXT || (*text != '"' && *text != '\'') || text[len - 1] != *text)
        return false;
    if (t->op != FILTER_EQ && t->op != FILTER_NE)
        return false;
    t->is_text = 1;
    memcpy(t->text, text + 1, len - 2);
    return true;
}

/* "arg0" to "arg5", "ret". */
static bool set_value(struct filter_term *t, const char *name, size_t len, bool returns)
{
    if (len == 4 && !strncmp(name, "arg", 3) && name[3] >= '0' && name[3] <= '5') {
        t->source = FILTER_ARG;
        t->index = (uint32_t)(name[3] - '0');
        return true;
    }
    t->source = FILTER_RET;
    return returns && len == 3 && !strncmp(name, "ret", 3);
}

static struct filter_term *new_term(struct trg_options *o, const char *word, size_t *name, const char **value)
{
    struct filter_term *t = &o->filter.term[o->filter.n];
    size_t sign;

    *name = strcspn(word, "=!<>&");
    if (o->filter.n == FILTER_TERMS || !*name)
        return NULL;
    memset(t, 0, sizeof(*t));
    sign = operator(word + *name, &t->op);
    if (!sign)
        return NULL;
    t->is_signed = 1;
    t->size = 8;
    *value = word + *name + sign;
    return t;
}

static bool set_if(struct trg_options *o, const char *word, bool returns)
{
    const char *value;
    size_t name;
    struct filter_term *t = new_term(o, word, &name, &value);

    if (!t || !set_value(t, word, name, returns) || !set_number(t, value))
        return false;
    o->filter.n++;
    return true;
}

bool trg_set_if_call(struct trg_options *o, const char *word)
{
    return set_if(o, word, true);
}

bool trg_set_if_entry(struct trg_options *o, const char *word)
{
    return set_if(o, word, false);
}

bool trg_set_if_field(struct trg_options *o, const char *word)
{
    const char *value;
    size_t name;
    struct filter_term *t = new_term(o, word, &name, &value);

    if (!t || name >= TRG_FIELD || !(set_number(t, value) || set_text(t, value)))
        return false;
    t->source = FILTER_FIELD;
    snprintf(o->field[o->filter.n], TRG_FIELD, "%.*s", (int)name, word);
    o->filter.n++;
    return true;
}

static const char *const values[] = {"ret", "arg0", "arg1", "arg2", "arg3", "arg4", "arg5"};

static size_t list(const char *const *words, size_t n, const char **out, size_t room)
{
    size_t i = 0;

    for (; i < n && i < room; i++)
        out[i] = words[i];
    return i;
}

size_t trg_if_call_words(const char **out, size_t room)
{
    return list(values, 7, out, room);
}

size_t trg_if_entry_words(const char **out, size_t room)
{
    return list(values + 1, 6, out, room);
}

size_t trg_no_words(const char **out, size_t room)
{
    (void)out;
    (void)room;
    return 0;
}
