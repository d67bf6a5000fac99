/* Protocol buffers' wire format. */
#include "viewer/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void put_raw(struct vw_pb *m, const void *data, size_t n)
{
    if (m->failed || st_vec_reserve(&m->bytes, n)) {
        m->failed = true;
        return;
    }
    if (n)
        memcpy(m->bytes.at + m->bytes.n, data, n);
    m->bytes.n += n;
}

static void put_varint(struct vw_pb *m, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    put_raw(m, bytes, n);
}

void vw_pb_varint(struct vw_pb *m, uint32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(m, value);
}

void vw_pb_fixed64(struct vw_pb *m, uint32_t field, uint64_t value)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    put_varint(m, (uint64_t)field << 3 | WIRE_FIXED64);
    put_raw(m, bytes, sizeof(bytes));
}

static void put_bytes(struct vw_pb *m, uint32_t field, const void *data, size_t n)
{
    put_varint(m, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(m, n);
    put_raw(m, data, n);
}

void vw_pb_string(struct vw_pb *m, uint32_t field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

void vw_pb_message(struct vw_pb *m, uint32_t field, struct vw_pb *sub)
{
    put_bytes(m, field, sub->bytes.at, sub->bytes.n);
    m->failed |= sub->failed;
    sub->bytes.n = 0;
}

void vw_pb_free(struct vw_pb *m)
{
    st_vec_free(&m->bytes);
}
