/* offcpu's keys: state= and idle=. */
#include "triggers/offcpu.h"
#include "triggers/syscalls.h"

#include <string.h>

struct word_bit {
    const char *word;

    uint32_t bit;
};

static const struct word_bit states[] = {
    {"blocked", OFFCPU_BLOCKED}, {"sleeping", OFFCPU_SLEEPING}, {"preempted", OFFCPU_PREEMPTED}};

/* Waits for work, not stalls. read and recv* are not among them: who calls these wants the data now. futex
 * and io_uring_enter are looked at more closely in the kernel (FUTEX_WAIT_BITSET, GETEVENTS). restart_syscall
 * is one of these that a signal or a tracer interrupted. */
static const char *const idle_syscalls[] = {
    "epoll_wait", "epoll_wait_old",  "epoll_pwait", "epoll_pwait2",    "poll",
    "ppoll",      "select",          "pselect6",    "accept",          "accept4",
    "nanosleep",  "clock_nanosleep", "pause",       "rt_sigtimedwait", "wait4",
    "waitid",     "restart_syscall",
};

/* The same in arch/x86/entry/syscalls/syscall_32.tbl; accept hides in socketcall there and is not seen. */
static const uint16_t idle_syscalls32[] = {
    0 /* restart_syscall */,
    7 /* waitpid */,
    29 /* pause */,
    82 /* select */,
    114 /* wait4 */,
    142 /* _newselect */,
    162 /* nanosleep */,
    168 /* poll */,
    177 /* rt_sigtimedwait */,
    256 /* epoll_wait */,
    267 /* clock_nanosleep */,
    284 /* waitid */,
    308 /* pselect6 */,
    309 /* ppoll */,
    319 /* epoll_pwait */,
    364 /* accept4 */,
    407 /* clock_nanosleep_time64 */,
    413 /* pselect6_time64 */,
    414 /* ppoll_time64 */,
    421 /* rt_sigtimedwait_time64 */,
    441 /* epoll_pwait2 */,
};

static void add(uint64_t *set, int number)
{
    set[number / 64] |= 1ull << (number % 64);
}

void trg_offcpu_defaults(void *to)
{
    struct offcpu_options *o = to;

    for (size_t i = 0; i < sizeof(idle_syscalls) / sizeof(idle_syscalls[0]); i++)
        add(o->idle, trg_syscall_number(idle_syscalls[i]));
    for (size_t i = 0; i < sizeof(idle_syscalls32) / sizeof(idle_syscalls32[0]); i++)
        add(o->idle32, idle_syscalls32[i]);
}

static bool set_state(void *to, const char *word)
{
    struct offcpu_options *o = to;

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (!strcmp(states[i].word, word)) {
            o->states |= states[i].bit;
            return true;
        }
    return false;
}

static size_t state_words(const char **out, size_t room)
{
    size_t n = 0;

    for (; n < sizeof(states) / sizeof(states[0]) && n < room; n++)
        out[n] = states[n].word;
    return n;
}

static bool set_idle(void *to, const char *word)
{
    struct offcpu_options *o = to;
    int number = trg_syscall_number(word);

    if (!strcmp(word, "yes")) {
        o->count_idle = true;
        return true;
    }
    if (number < 0)
        return false;
    add(o->idle, number);
    return true;
}

static size_t idle_words(const char **out, size_t room)
{
    out[0] = "yes";
    return 1 + trg_syscall_names(out + 1, room - 1);
}

const struct trg_key trg_offcpu_keys[] = {
    {"state", "blocked, sleeping or preempted", true, set_state, state_words},
    {"idle", "'yes' or the name of a system call", true, set_idle, idle_words},
    {NULL, NULL, false, NULL, NULL},
};
