/* --self-load: the program loadgen as a child, source and target of the data that is forwarded. */
#ifndef FORWARDER_SELF_LOAD_H
#define FORWARDER_SELF_LOAD_H

#include "options.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

struct self_load {
    /* the target's socket, which the child inherits; -1: no self load, or handed over */
    int listener;
    pid_t pid;

    /* the child's wait status */
    bool ended;
    int status;
};

/* Opens the target's socket on 127.0.0.1 and puts its address in *TARGET. Returns 0 or -1 after a message. */
int self_load_listen(struct self_load *load, struct sockaddr_in *target);

/* Starts loadgen (beside this program), which connects to FORWARDER. Returns 0 or -1 after a message. */
int self_load_start(struct self_load *load, const struct sockaddr_in *forwarder,
                    const struct options *options);

/* Tells the child to finish. Returns false if there is no child to wait for. */
bool self_load_stop(struct self_load *load);

/* To be called on SIGCHLD: true if the child has ended. */
bool self_load_ended(struct self_load *load);

/* Ends the child if it is still there. Returns 0 if all its data came whole (or there was no child), else -1
 * after a message. */
int self_load_finish(struct self_load *load);

#endif
