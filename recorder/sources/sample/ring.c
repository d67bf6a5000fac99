/* A ring of records that the kernel overwrites. */
#include "recorder/sources/sample/ring.h"
#include "base/units.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int smp_ring_map(struct smp_ring *ring, struct st_error *err)
{
    void *at = mmap(NULL, page_size() + ring->bytes, PROT_READ, MAP_SHARED, ring->fd, 0);
    char size[24];

    if (at != MAP_FAILED) {
        ring->page = at;
        return 0;
    }
    if (errno != EPERM && errno != ENOMEM)
        return st_fail_errno(err, ST_EFAIL, "cannot map a ring of samples");
    st_fail(err, ST_ECANNOT, "the %s allows no ring of %s for samples",
            errno == EPERM ? "limit of locked memory" : "machine's memory",
            st_format_size(ring->bytes, size, sizeof(size)));
    return st_hint(err, "a smaller --ring, or raise `ulimit -l` or kernel.perf_event_mlock_kb, or run with "
                        "CAP_IPC_LOCK");
}

int smp_ring_pause(const struct smp_ring *ring, bool on, struct st_error *err)
{
    if (!ioctl(ring->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, on ? 1 : 0))
        return 0;
    return st_fail_errno(err, ST_EFAIL, "cannot %s a ring of samples", on ? "pause" : "resume");
}

/* The head counts down from 0. */
uint64_t smp_ring_written(const struct smp_ring *ring)
{
    return -__atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

void smp_ring_mark(struct smp_ring *ring)
{
    ring->marked = smp_ring_written(ring);
}

bool smp_ring_has_room(const struct smp_ring *ring)
{
    uint64_t written = smp_ring_written(ring);

    return written <= ring->bytes || written - ring->marked <= ring->bytes / 4;
}

void smp_ring_parts(const struct smp_ring *ring, struct rec_ring *to)
{
    const char *data = (const char *)ring->page + ring->page->data_offset;
    uint64_t written = smp_ring_written(ring), head = -written;
    size_t size = written < ring->bytes ? (size_t)written : ring->bytes;
    size_t at = head & (ring->bytes - 1);
    size_t first = size < ring->bytes - at ? size : ring->bytes - at;

    to->part[0] = data + at;
    to->size[0] = first;
    to->part[1] = data;
    to->size[1] = size - first;
    to->offset = written - size;
}

void smp_ring_unmap(struct smp_ring *ring)
{
    if (ring->page)
        munmap((void *)ring->page, page_size() + ring->bytes);
    ring->page = NULL;
}
