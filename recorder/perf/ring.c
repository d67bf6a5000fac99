/* The ring of a perf event. The protocol of head and tail stands at struct perf_event_mmap_page in
 * <linux/perf_event.h>. */
#include "recorder/perf/ring.h"
#include "recorder/perf/event.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int rec_perf_ring_map(struct rec_perf_ring *ring, int fd, size_t bytes, struct st_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (;; bytes /= 2) {
        void *at = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (at != MAP_FAILED) {
            ring->page = at;
            ring->bytes = bytes;
            return 0;
        }
        if ((errno != EPERM && errno != ENOMEM) || bytes <= page)
            break;
    }
    if (errno != EPERM)
        return st_fail_errno(err, ST_EFAIL, "cannot map the ring of a perf event");
    st_fail(err, ST_ECANNOT, "the limit of locked memory allows no ring for perf events");
    return st_hint(err,
                   "raise `ulimit -l` or kernel.perf_event_mlock_kb, or end other recorders of this user");
}

int rec_perf_ring_probe(struct st_error *err)
{
    struct rec_perf_ring ring = {0};
    struct perf_event_attr attr;
    int fd, rc;

    rec_perf_dummy(&attr);
    fd = rec_perf_event(&attr, 0, -1);
    if (fd < 0)
        return rec_perf_refused("record this process itself", err);
    rc = rec_perf_ring_map(&ring, fd, (size_t)sysconf(_SC_PAGESIZE), err);
    rec_perf_ring_unmap(&ring);
    close(fd);
    return rc;
}

/* Copies `size` bytes that begin at `from` (a position of the stream) and may run over the ring's end. */
static void copy_out(const struct rec_perf_ring *ring, const char *data, uint64_t from, void *to, size_t size)
{
    size_t at = from & (ring->bytes - 1);
    size_t first = size < ring->bytes - at ? size : ring->bytes - at;

    memcpy(to, data + at, first);
    memcpy((char *)to + first, data, size - first);
}

int rec_perf_ring_drain(struct rec_perf_ring *ring, rec_perf_record_fn *fn, void *ctx, struct st_error *err)
{
    uint64_t buffer[(1 << 16) / sizeof(uint64_t)]; /* header.size has 16 bits */
    struct perf_event_header *record = (struct perf_event_header *)buffer;
    const char *data;
    uint64_t head, tail;
    int rc = 0;

    if (!ring->page)
        return 0;
    data = (const char *)ring->page + ring->page->data_offset;
    head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    tail = ring->page->data_tail;
    while (!rc && tail < head) {
        copy_out(ring, data, tail, record, sizeof(*record));
        if (record->size < sizeof(*record) || record->size > head - tail) {
            rc = st_fail(err, ST_EFAIL, "the kernel's ring of perf events holds a record of %u bytes",
                         record->size);
            tail = head;
            break;
        }
        copy_out(ring, data, tail, record, record->size);
        tail += record->size;
        rc = fn(ctx, record, err);
    }
    __atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
    return rc;
}

void rec_perf_ring_unmap(struct rec_perf_ring *ring)
{
    if (ring->page)
        munmap(ring->page, (size_t)sysconf(_SC_PAGESIZE) + ring->bytes);
    ring->page = NULL;
}
