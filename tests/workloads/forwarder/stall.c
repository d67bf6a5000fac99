/* The list of stalls: reading the option, deciding which is due, writing the record. */
#include "stall.h"

#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct stall_kind *const kinds[] = {
    &stall_kind_fsync, &stall_kind_lock, &stall_kind_busy,    &stall_kind_slowsend,
    &stall_kind_nagle, &stall_kind_idle, &stall_kind_forever,
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static struct stall stalls[STALLS_MAX];
static unsigned stall_count, prepared_count;
static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t start_condition = PTHREAD_COND_INITIALIZER;
static bool started;
static _Atomic uint64_t logged;

static const struct stall_kind *find_kind(const char *name, size_t length)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strlen(kinds[i]->name) == length && !memcmp(kinds[i]->name, name, length))
            return kinds[i];
    return NULL;
}

/* Reads a whole number up to an hour of ms that ends at the character end. Returns 0 or -1. */
static int read_ms(const char **text, char end, unsigned *ms)
{
    char *stop;

    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    unsigned long value = strtoul(*text, &stop, 10);
    if (errno || value > 3600000 || *stop != end)
        return -1;
    *ms = (unsigned)value;
    *text = end ? stop + 1 : stop;
    return 0;
}

static int complain(const char *words, const char *why)
{
    fprintf(stderr, "forwarder: --stall %s: %s\n", words, why);
    return -1;
}

int stalls_add(const char *words)
{
    struct stall stall = {.due_ns = STALL_NEVER};
    const char *colon = strchr(words, ':');

    if (stall_count == STALLS_MAX)
        return complain(words, "too many stalls (at most 16)");
    if (!colon)
        return complain(words, "must be KIND:MS:EVERY");
    stall.kind = find_kind(words, (size_t)(colon - words));
    if (!stall.kind)
        return complain(words, "the kind must be fsync, lock, busy, slowsend, nagle, idle or forever");
    const char *rest = colon + 1;
    if (read_ms(&rest, ':', &stall.ms) || read_ms(&rest, '\0', &stall.every_ms))
        return complain(words, "MS and EVERY must be whole milliseconds, at most 3600000");
    if (stall.kind->fixed_ms && stall.ms != stall.kind->fixed_ms)
        return complain(words, "MS must be 40: the kernel's shortest delayed ACK sets it");
    if (stall.kind->run && stall.ms == 0)
        return complain(words, "MS must be at least 1");
    stalls[stall_count++] = stall;
    return 0;
}

int stalls_prepare(const struct stall_config *config)
{
    for (unsigned i = 0; i < stall_count; i++) {
        stalls[i].left = config->count ? config->count : UINT64_MAX;
        prepared_count = i + 1;
        if (stalls[i].kind->prepare && stalls[i].kind->prepare(&stalls[i], config))
            return -1;
    }
    return 0;
}

/* Returns false if they had been started before. */
static bool mark_started(void)
{
    pthread_mutex_lock(&start_mutex);
    bool first = !started;
    started = true;
    pthread_cond_broadcast(&start_condition);
    pthread_mutex_unlock(&start_mutex);
    return first;
}

void stalls_start(void)
{
    if (!mark_started())
        return;
    for (unsigned i = 0; i < stall_count; i++)
        if (stalls[i].kind->run)
            atomic_store(&stalls[i].due_ns, now_ns() + stalls[i].every_ms * UINT64_C(1000000));
}

void stalls_wait_for_start(void)
{
    pthread_mutex_lock(&start_mutex);
    while (!started)
        pthread_cond_wait(&start_condition, &start_mutex);
    pthread_mutex_unlock(&start_mutex);
}

void log_stall(const struct stall *stall, uint64_t start_ns, uint64_t end_ns, bool failed)
{
    uint64_t number = atomic_fetch_add(&logged, 1) + 1;

    if (end_ns)
        log_line("stall n=%" PRIu64 " kind=%s ms=%u tid=%d start_ns=%" PRIu64 " end_ns=%" PRIu64
                 " duration_ns=%" PRIu64 "%s",
                 number, stall->kind->name, stall->ms, gettid(), start_ns, end_ns, end_ns - start_ns,
                 failed ? " failed" : "");
    else
        log_line("stall n=%" PRIu64 " kind=%s ms=%u tid=%d start_ns=%" PRIu64 " end_ns=- duration_ns=-",
                 number, stall->kind->name, stall->ms, gettid(), start_ns);
}

uint64_t stalls_logged(void)
{
    return atomic_load(&logged);
}

/* Takes the stall for this thread if it is due; nobody else can run it before its next due time is set. */
static bool claim(struct stall *stall)
{
    uint64_t due = atomic_load(&stall->due_ns);

    return due != STALL_NEVER && now_ns() >= due &&
           atomic_compare_exchange_strong(&stall->due_ns, &due, STALL_NEVER);
}

static void run_stall(struct stall *stall)
{
    uint64_t start_ns = now_ns(), end_ns = start_ns;
    bool failed = stall->kind->run(stall, &start_ns, &end_ns) != 0;

    log_stall(stall, start_ns, end_ns, failed);
    if (--stall->left)
        atomic_store(&stall->due_ns, end_ns + stall->every_ms * UINT64_C(1000000));
}

void maybe_stall(void)
{
    for (unsigned i = 0; i < stall_count; i++)
        if (claim(&stalls[i]))
            run_stall(&stalls[i]);
}

void stalls_finish(void)
{
    for (unsigned i = 0; i < prepared_count; i++)
        if (stalls[i].kind->finish)
            stalls[i].kind->finish(&stalls[i]);
    prepared_count = 0;
}

void sleep_until_ns(uint64_t when_ns)
{
    struct timespec when = {.tv_sec = (time_t)(when_ns / 1000000000u),
                            .tv_nsec = (long)(when_ns % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
        ;
}

void wait_for_post(sem_t *semaphore)
{
    while (sem_wait(semaphore) && errno == EINTR)
        ;
}
