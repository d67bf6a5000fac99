/* An AUX ring of the intel_pt PMU in overwrite mode. */
#include "recorder/sources/intel_pt/ring.h"
#include "base/units.h"
#include "recorder/perf/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int pt_event_open(const struct perf_event_attr *attr, pid_t tid, int cpu, int *fd, struct st_error *err)
{
    char what[64] = "record every CPU with Intel PT";

    *fd = rec_perf_event(attr, tid, cpu);
    if (*fd >= 0)
        return PT_DONE;
    if (errno == ESRCH)
        return PT_GONE;
    if (errno == EBUSY)
        return PT_BUSY;
    if (tid >= 0)
        snprintf(what, sizeof(what), "record %s of thread %d with Intel PT",
                 attr->exclude_kernel ? "user code" : "user and kernel code", tid);
    return rec_perf_refused(what, err);
}

static int refuse_size(const struct pt_ring *ring, struct st_error *err)
{
    char size[24];

    if (errno != EPERM && errno != ENOMEM)
        return st_fail_errno(err, ST_EFAIL, "cannot map a ring of Intel PT");
    st_format_size(ring->bytes, size, sizeof(size));
    st_fail(err, ST_ECANNOT, "the %s allows no ring of %s for Intel PT",
            errno == EPERM ? "limit of locked memory" : "machine's memory", size);
    st_hint(err,
            "a smaller --ring, or raise `ulimit -l` or kernel.perf_event_mlock_kb, or run with CAP_IPC_LOCK");
    return PT_TOO_LARGE;
}

int pt_ring_map(struct pt_ring *ring, int fd, struct st_error *err)
{
    size_t page = page_size();
    /* No room for records: the side-band is in rings of its own, and those that the PMU writes into this one
     * tell nothing that is not known. */
    void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *aux;
    int rc;

    if (at == MAP_FAILED)
        return refuse_size(ring, err);
    ring->page = at;
    ring->page->aux_offset = page;
    ring->page->aux_size = ring->bytes;
    aux = mmap(NULL, ring->bytes, PROT_READ, MAP_SHARED, fd, (off_t)page);
    if (aux != MAP_FAILED) {
        ring->aux = aux;
        return PT_DONE;
    }
    rc = refuse_size(ring, err);
    pt_ring_unmap(ring);
    return rc;
}

uint64_t pt_ring_place(const struct pt_ring *ring)
{
    return __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
}

/* How many of the bytes were never written: zeros, from the first one on. The target waits for it. */
static size_t unwritten(const uint8_t *at, size_t bytes)
{
    size_t n = 0;
    uint64_t word = 0;

    for (; n + sizeof(word) <= bytes; n += sizeof(word)) {
        memcpy(&word, at + n, sizeof(word));
        if (word)
            break;
    }
    while (n < bytes && !at[n])
        n++;
    return n;
}

void pt_ring_parts(const struct pt_ring *ring, struct rec_ring *to)
{
    size_t head = pt_ring_place(ring) & (ring->bytes - 1);
    size_t old = ring->bytes - head;

    old -= unwritten(ring->aux + head, old);
    to->part[0] = ring->aux + (ring->bytes - old);
    to->size[0] = old;
    to->part[1] = ring->aux;
    to->size[1] = head;
    /* How often it went round nobody tells: that older bytes are gone is what counts. */
    to->offset = old ? head : 0;
    if (old && !to->offset)
        to->offset = ring->bytes;
}

bool pt_ring_clock(const struct pt_ring *ring, uint64_t *mult, uint64_t *shift, uint64_t *zero)
{
    const struct perf_event_mmap_page *page = ring->page;
    uint32_t seq;
    bool there;

    do { /* the protocol of `lock` stands at the struct */
        seq = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
        there = page->cap_user_time_zero;
        *mult = page->time_mult;
        *shift = page->time_shift;
        *zero = page->time_zero;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (seq != __atomic_load_n(&page->lock, __ATOMIC_RELAXED) || seq & 1);
    return there;
}

void pt_ring_unmap(struct pt_ring *ring)
{
    if (ring->aux)
        munmap((void *)ring->aux, ring->bytes);
    if (ring->page)
        munmap(ring->page, page_size());
    ring->aux = NULL;
    ring->page = NULL;
}
