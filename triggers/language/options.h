/* What is written behind a kind's name: its WHAT and its keys. Every kind has the same options and uses those
 * that its table of keys offers. */
#ifndef ST_TRIGGERS_LANGUAGE_OPTIONS_H
#define ST_TRIGGERS_LANGUAGE_OPTIONS_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRG_NAME  4096 /* a path is one: PATH_MAX */
#define TRG_FIELD 32

struct trg_options {
    char name[TRG_NAME]; /* WHAT; "": none */

    uint32_t states; /* enum offcpu_state; 0: none named, all count */

    uint32_t sides; /* enum socket_side; 0: none named, all count */

    bool count_idle; /* idle=yes, idle=none */

    bool learn_idle; /* idle=learned: also without the key, for kinds that can */

    bool show_places; /* it was written: the places are printed too */

    uint64_t idle[OFFCPU_SYSCALLS / 64];

    uint64_t idle32[OFFCPU_SYSCALLS / 64];

    struct filter filter;

    char field[FILTER_TERMS][TRG_FIELD]; /* of each FILTER_FIELD: its name; its place is not known yet */
};

/* The waits for work that every trigger knows. */
void trg_default_options(struct trg_options *options);

/* Setters of keys (struct trg_key.set and .words). */
bool trg_set_state(struct trg_options *o, const char *word);
size_t trg_state_words(const char **out, size_t room);
bool trg_set_idle(struct trg_options *o, const char *word);
size_t trg_idle_words(const char **out, size_t room);
bool trg_set_idle_list(struct trg_options *o, const char *word); /* of kinds that cannot learn */
size_t trg_idle_list_words(const char **out, size_t room);
bool trg_set_side(struct trg_options *o, const char *word);
size_t trg_side_words(const char **out, size_t room);

/* if=: one condition. On arguments and the return value, on arguments only, or on fields of a tracepoint. */
bool trg_set_if_call(struct trg_options *o, const char *word);
bool trg_set_if_entry(struct trg_options *o, const char *word);
bool trg_set_if_field(struct trg_options *o, const char *word);
size_t trg_if_call_words(const char **out, size_t room);
size_t trg_if_entry_words(const char **out, size_t room);
size_t trg_no_words(const char **out, size_t room);

#define TRG_KEY_STATE                                                                                        \
    {                                                                                                        \
        "state", "blocked, sleeping or preempted", "+", trg_set_state, trg_state_words                       \
    }
#define TRG_KEY_IDLE                                                                                         \
    {                                                                                                        \
        "idle", "list, learned, none or the name of a system call", "+", trg_set_idle, trg_idle_words        \
    }
#define TRG_KEY_IDLE_LIST                                                                                    \
    {                                                                                                        \
        "idle", "list, none or the name of a system call", "+", trg_set_idle_list, trg_idle_list_words       \
    }
#define TRG_KEY_SIDE                                                                                         \
    {                                                                                                        \
        "side", "unread, unsent or unaccepted", "+", trg_set_side, trg_side_words                            \
    }
#define TRG_KEY_IF_CALL                                                                                      \
    {                                                                                                        \
        "if", "a condition, as arg0==3 or ret<0 (== != < <= > >= &)", "&&", trg_set_if_call,                 \
            trg_if_call_words                                                                                \
    }
#define TRG_KEY_IF_ENTRY                                                                                     \
    {                                                                                                        \
        "if", "a condition, as arg0==3 (== != < <= > >= &)", "&&", trg_set_if_entry, trg_if_entry_words      \
    }
#define TRG_KEY_IF_FIELD                                                                                     \
    {                                                                                                        \
        "if", "a condition, as prev_pid==3 (== != < <= > >= &)", "&&", trg_set_if_field, trg_no_words        \
    }
#define TRG_KEY_END                                                                                          \
    {                                                                                                        \
        NULL, NULL, NULL, NULL, NULL                                                                         \
    }

#endif
