/* Protocol buffers, the wire format of messages that are written once and not read (protobuf.dev,
 * "Encoding"). */
#ifndef ST_VIEWER_EXPORT_PROTOBUF_H
#define ST_VIEWER_EXPORT_PROTOBUF_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message being built. {0} is the empty message; freed with vw_pb_free. */
struct vw_pb {
    ST_VEC(uint8_t) bytes;

    bool failed; /* memory ran out: the message is not to be used */
};

void vw_pb_varint(struct vw_pb *m, uint32_t field, uint64_t value);
void vw_pb_fixed64(struct vw_pb *m, uint32_t field, uint64_t value);
void vw_pb_string(struct vw_pb *m, uint32_t field, const char *text);

/* Adds a finished message as a field and empties it. */
void vw_pb_message(struct vw_pb *m, uint32_t field, struct vw_pb *sub);

void vw_pb_free(struct vw_pb *m);

#endif
