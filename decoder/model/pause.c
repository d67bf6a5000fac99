/* The times in which nothing was recorded because an earlier snapshot was being taken. */
#include "decoder/model/model_impl.h"

/* Whether the thread had a CPU meanwhile, as far as anybody knows. */
static bool ran(const struct dec_thread *t, uint64_t start, uint64_t end)
{
    for (size_t i = 0; t && i < t->slices.n; i++)
        if (t->slices.at[i].start < end && t->slices.at[i].end > start)
            return true;
    return !t || !t->slices.n;
}

/* The gap that a pause made in a ring, whose last branch before it was at `last`. False: none, for the ring
 * is of a thread that was off its CPU. */
static bool gap_of(struct dec_model *m, const struct dec_stream_info *info, const struct dec_pause *pause,
                   uint64_t last, struct dec_event *gap)
{
    int32_t cpu = m->sb->rings.at[info->ring].cpu;
    uint64_t start = last > pause->stopped ? last : pause->stopped;

    if (start > pause->done)
        start = pause->done;
    *gap = (struct dec_event){.time = start, .kind = DEC_GAP, .arg = DEC_GAP_PAUSED, .cpu = cpu};
    return cpu >= 0 || ran(dec_sideband_thread(m->sb, info->tid, -1, start), start, pause->resumed);
}

/* Recording goes on with a DEC_ENABLE: the first one behind the pause, or behind several. */
size_t model_find_pause(struct dec_model *m, const struct dec_stream_info *info,
                        const struct dec_event *events, size_t n, struct dec_event *gap)
{
    struct model_ring *ring = &m->rings[info->ring];

    for (size_t i = 0; i < n && ring->pause < m->sb->pauses.n; i++) {
        struct dec_pause pause = m->sb->pauses.at[ring->pause];

        if (events[i].kind != DEC_ENABLE || events[i].time < pause.done)
            continue;
        while (ring->pause < m->sb->pauses.n && m->sb->pauses.at[ring->pause].done <= events[i].time)
            pause.resumed = m->sb->pauses.at[ring->pause++].resumed;
        if (!i && ring->first == UINT64_MAX)
            continue; /* before all that is in the ring */
        if (gap_of(m, info, &pause, i ? events[i - 1].time : ring->last, gap))
            return i;
    }
    return n;
}
