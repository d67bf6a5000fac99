/* The line of progress, and the thread that draws it. */
#include "base/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_MS = 250 };

static const double AFTER = 1; /* seconds */

atomic_bool st_progress_on;

static struct {
    pthread_mutex_t lock;

    pthread_cond_t ended;

    pthread_t thread;

    const char *what;

    uint64_t all;

    _Atomic uint64_t done;

    double begun, part_begun, after;

    bool shown; /* a line stands there */

    bool end;
} p = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void put(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text)); /* as a whole, past stdio's locks */

    (void)written;
}

/* With the lock held. */
static void draw(void)
{
    double time = now();
    uint64_t done = atomic_load(&p.done);
    char line[160];

    if (time - p.begun < p.after)
        return;
    if (p.all)
        snprintf(line, sizeof(line), "\r%.100s: %u %%\033[K", p.what,
                 done < p.all ? (unsigned)(100.0 * (double)done / (double)p.all) : 100);
    else
        snprintf(line, sizeof(line), "\r%.100s: %.0f s\033[K", p.what, time - p.part_begun);
    put(line);
    p.shown = true;
}

static void hide(void)
{
    if (p.shown)
        put("\r\033[K");
    p.shown = false;
}

static void *keep_drawing(void *unused)
{
    struct timespec until;

    (void)unused;
    pthread_mutex_lock(&p.lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    while (!p.end) {
        until.tv_nsec += EVERY_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!p.end && pthread_cond_timedwait(&p.ended, &p.lock, &until) == 0)
            ;
        if (!p.end)
            draw();
    }
    pthread_mutex_unlock(&p.lock);
    return NULL;
}

/* Signals are for the threads that work. */
static bool start_thread(void)
{
    sigset_t all, before;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&p.thread, NULL, keep_drawing, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* The child has the line's thread no more, nor whoever holds the lock. */
static void forget_in_child(void)
{
    pthread_mutex_init(&p.lock, NULL);
    atomic_store(&st_progress_on, false);
    p.shown = false;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* Whether the work is to be shown. */
static bool begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *after = getenv("STALLTRAP_PROGRESS");
    pthread_condattr_t monotonic;

    if ((!isatty(STDERR_FILENO) && !getenv(ST_PROGRESS_TERMINAL)) || (after && !strcmp(after, "off")))
        return false;
    pthread_once(&once, watch_forks);
    p.after = after && *after ? strtod(after, NULL) : AFTER;
    p.begun = now();
    p.end = false;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return true;
}

void st_progress(const char *what, uint64_t all)
{
    bool on = atomic_load(&st_progress_on);

    if (!on && !begin())
        return;
    pthread_mutex_lock(&p.lock);
    p.what = what;
    p.all = all;
    p.part_begun = now();
    atomic_store(&p.done, 0);
    draw();
    pthread_mutex_unlock(&p.lock);
    if (!on && start_thread())
        atomic_store(&st_progress_on, true);
    else if (!on)
        st_progress_hide();
}

void st_progress_count(uint64_t n)
{
    atomic_fetch_add_explicit(&p.done, n, memory_order_relaxed);
}

void st_progress_hide(void)
{
    pthread_mutex_lock(&p.lock);
    hide();
    pthread_mutex_unlock(&p.lock);
}

void st_progress_end(void)
{
    if (!atomic_load(&st_progress_on))
        return;
    pthread_mutex_lock(&p.lock);
    p.end = true;
    pthread_cond_signal(&p.ended);
    pthread_mutex_unlock(&p.lock);
    pthread_join(p.thread, NULL);
    pthread_cond_destroy(&p.ended);
    atomic_store(&st_progress_on, false);
    hide();
}
