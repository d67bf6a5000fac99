/* The other end of a TCP connection that a stalled thread reads from. */
#ifndef ST_TRIGGERS_PEER_H
#define ST_TRIGGERS_PEER_H

#include "base/stall_record.h"

/* Adds to a record, by /proc/PID/net/tcp and tcp6: of a stall that goes on in read, recv and their kin of a
 * TCP socket `peer`, ADDRESS:PORT, and `accepted` 1, where the process listens at the socket's own port; and
 * of a record that has a peer `peer_process`, whose socket the other end is, where that is one process of the
 * same network on this host. Looks through 20,000 descriptors at most. */
void trg_add_peer(struct st_stall_record *record);

#endif
