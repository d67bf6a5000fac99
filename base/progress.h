/* How far long work is, for the person at the terminal: one line on stderr, "WHAT: 42 %", which is gone when
 * the work ends. Nothing where stderr is no terminal.
 *
 * A thread of its own draws it, four times a second, once the work took a second; STALLTRAP_PROGRESS in the
 * environment is another number of seconds ("0": at once), or "off". One work at a time in a process. */
#ifndef ST_BASE_PROGRESS_H
#define ST_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In the environment of a process whose stderr is a pipe to one that passes it on to a terminal: progress is
 * shown. */
#define ST_PROGRESS_TERMINAL "STALLTRAP_TERMINAL"

/* A part of the work begins: `what` ("decoding", printable, lives on) of `all` units; 0: it is not known how
 * many, so the line says how long it takes. Begins the work where none was begun. */
void st_progress(const char *what, uint64_t all);

/* Nothing is shown any more and the line is gone. Harmless where there is no work. Call it before printing
 * results; messages of base/log.h may come in between. */
void st_progress_end(void);

/* The line makes room for something else on stderr, which ends in a newline. */
void st_progress_hide(void);

extern atomic_bool st_progress_on;
void st_progress_count(uint64_t n);

/* So many more units are done. By any thread; costs next to nothing where nothing is shown. */
static inline void st_progress_add(uint64_t n)
{
    if (atomic_load_explicit(&st_progress_on, memory_order_relaxed))
        st_progress_count(n);
}

#endif
