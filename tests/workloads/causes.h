/* Of the program causes, what its files share. Modes never return. */
#ifndef ST_WORKLOADS_CAUSES_H
#define ST_WORKLOADS_CAUSES_H

#include <stdbool.h>

#define LONG_MS 40 /* a wait that is a stall */

extern const char *argument; /* behind the mode; NULL: none */

/* Ends the program with a message (errno's) when something it needs cannot be had. */
void check(bool good, const char *what);

/* Keeps the CPU for so long. */
void compute(unsigned ms);

/* Waits for time, in poll. */
void rest(unsigned ms);

void ask_in_two(void);
void ask_fast_server(void);
void ask_slow_server(void);
void serve_requests(void);
void look_up_names(void);
void ask_datagrams(void);
void send_to_slow_reader(void);

#endif
