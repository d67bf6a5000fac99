/* The forwarder's command line. */
#ifndef FORWARDER_OPTIONS_H
#define FORWARDER_OPTIONS_H

#include "stall.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define WORKERS_MAX 64

/* options_read(): go on; every other value is the exit status. */
#define OPTIONS_RUN (-1)

struct options {
    struct sockaddr_in listen, target;
    unsigned threads, buffer;
    const char *log;
    bool also_stderr, wait_usr1, self_load;
    struct stall_config stalls;

    /* of --self-load: connections, bytes a second over all (0: as fast as it goes), seconds (0: until the
     * end) */
    unsigned load_connections, load_seconds;
    uint64_t load_rate;
};

/* Reads the command line; --stall options go straight to stalls_add(). Returns OPTIONS_RUN, 0 after --help,
 * or 2 after a message on stderr. */
int options_read(struct options *options, int argc, char **argv);

/* A listening TCP socket, non-blocking, or -1 with errno set. */
int listen_on(const struct sockaddr_in *address);

#endif
