/* The writer never waits: what it wrote over meanwhile is found by looking at its head again. */
#include "triggers/select_ring.h"

struct trg_select_switches trg_ring_take(const struct select_ring *ring, uint64_t *taken,
                                         struct select_switch copy[SELECT_RING])
{
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), from = *taken, whole;
    struct trg_select_switches found;

    if (head - from > SELECT_RING)
        from = head - SELECT_RING;
    for (uint64_t i = from; i < head; i++)
        copy[i - from] = ring->at[i % SELECT_RING];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    /* One more than the head says may be half written. */
    whole = __atomic_load_n(&ring->head, __ATOMIC_RELAXED) + 1;
    whole = whole > SELECT_RING ? whole - SELECT_RING : 0;
    whole = whole < from ? from : whole > head ? head : whole;
    found.at = copy + (whole - from);
    found.n = head - whole;
    found.lost = whole - *taken;
    *taken = head;
    return found;
}
